/** Environment reported by a run's boots: topology, versions and command lines. */
import type { TargetReport } from "@/api/types";
import { clean, oneLine } from "@/lib/words";
import { CopyButton } from "@/parts/CopyButton";
import { Scroll } from "@/parts/Scroll";
import { type CpuLayout, declaredLayout, describe, measuredLayout } from "@/parts/topology/layout";
import { TopologyDrawing } from "@/parts/topology/TopologyDrawing";
import classes from "./Environment.module.css";
import { commandLines } from "./model";

export function Environment({ target }: { target: TargetReport }) {
  const { environment, declared_topology, device_type } = target;
  const reported = environment?.topology ? measuredLayout(environment.topology) : null;
  const expected = declaredLayout(declared_topology);
  // Compare only properties that the device type describes.
  const describedPart = (layout: CpuLayout) =>
    describe({
      ...layout,
      cluster: expected.cluster && layout.cluster,
      capacity: expected.capacity && layout.capacity,
    });
  const differs = reported !== null && describedPart(reported) !== describedPart(expected);
  return (
    <div className={classes.whole}>
      <h3>Environment</h3>
      <div className={classes.columns}>
        <div className={classes.topology}>
          <TopologyDrawing layout={reported ?? expected} name={environment?.device ?? device_type} words />
          <p className="fine">
            {reported
              ? "Reported by the booted kernel."
              : "As described by the device type; no boot has reported its topology."}
            {differs && ` Declared is ${describe(expected)}.`}
          </p>
          {environment &&
            Object.entries(environment.commands).map(([scenario, command]) => (
              <Line key={scenario} name={`Command of ${scenario}`} text={command} />
            ))}
          {environment &&
            commandLines(environment.cmdline).map(({ of, text, shortened }) => (
              <Line
                key={of}
                name={`Kernel command line of ${of}${shortened ? ", without the lab's wqlab.* parameters" : ""}`}
                text={text}
              />
            ))}
        </div>
        <dl className={`facts ${classes.facts}`}>
          {factsOf(target).map(([name, value]) => (
            <Fact key={name} name={name} value={value} />
          ))}
        </dl>
      </div>
    </div>
  );
}

function Fact({ name, value }: { name: string; value: string }) {
  return (
    <>
      <dt>{oneLine(name)}</dt>
      <dd>{oneLine(value)}</dd>
    </>
  );
}

function Line({ name, text }: { name: string; text: string }) {
  return (
    <div className={classes.line}>
      <div className={classes.head}>
        <span className="muted">{name}</span>
        <CopyButton text={text} name={`Copy: ${name}`} />
      </div>
      <Scroll name={name} className={classes.text}>
        <pre>{clean(text)}</pre>
      </Scroll>
    </div>
  );
}

const LONG = 60;

function factsOf({ environment, device_summary, device_type, overhead_s }: TargetReport): [string, string][] {
  const facts: [string, string][] = [
    ["device", [environment?.device ?? device_type, device_summary].filter(Boolean).join(", ")],
  ];
  if (!environment) return facts;
  facts.push(...perArm("release", environment.release), ...perArm("build-id", environment.build_id_gnu));
  // Long values go last; short ones decide whether two systems are comparable.
  const differing = new Set(environment.differences?.map(each => each.name));
  const reported = Object.entries(environment.facts).filter(
    ([name, value]) => value !== "" && !differing.has(name),
  );
  facts.push(...reported.toSorted((a, b) => Number(a[1].length > LONG) - Number(b[1].length > LONG)));
  if (overhead_s !== null)
    facts.push(["lab overhead", `${overhead_s.toFixed(1)} s per boot, excluding boot and workload`]);
  return facts;
}

/** One fact if both arms have the same value, and otherwise one per arm. */
function perArm(name: string, values: Record<string, string>): [string, string][] {
  const entries = Object.entries(values).filter(([, value]) => value !== "");
  const [first] = entries;
  if (first && entries.every(([, value]) => value === first[1])) return [[name, first[1]]];
  return entries.map(([arm, value]) => [`${name}, ${arm}`, value]);
}
