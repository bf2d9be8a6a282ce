import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { api, dataOf } from "@/api/client";
import type { DeviceTrial } from "@/api/types";
import { Button } from "@/kit";
import { oneLine } from "@/lib/words";
import { CommandBlock } from "@/parts/CommandBlock";
import { Section } from "@/parts/Page";
import { RelativeTime } from "@/parts/RelativeTime";
import { Skeleton } from "@/parts/Skeleton";
import { StateBadge } from "@/parts/StateBadge";
import { LoadError } from "../LoadError";
import classes from "./NewDevice.module.css";
import { trialQuery } from "./trialQuery";

type Step = DeviceTrial["steps"][number];

const TITLES: Record<Step["step"], string> = {
  console: "Console",
  power_off: "Power off",
  power_on: "Power on",
  golden: "Golden system",
  echo: "Console echo",
  ssh: "SSH",
  machine: "CPUs and disks",
  kexec: "kexec",
  reset: "Reset",
};
const MARKS = { ok: "ok", failed: "failed", skipped: "skipped" } as const;

/** A trial with its steps as they end, the advice for a failure, and the files that add the machine. */
export function TrialView({ id, onAgain }: { id: number; onAgain(trial: DeviceTrial): void }) {
  const request = useQuery(trialQuery(id));
  const trial = request.data;
  if (!trial)
    return request.error ? (
      <LoadError what="The trial" error={request.error} onRetry={() => void request.refetch()} />
    ) : (
      <Skeleton lines={9} height="1.8rem" />
    );
  return (
    <>
      <Section
        id="steps"
        title={`Trial of ${trial.device.name}`}
        lead={
          <>
            <StateBadge state={trial.state} outcome={trial.outcome} />, requested by {trial.by},{" "}
            <RelativeTime at={trial.created_at} />
          </>
        }
      >
        <Steps trial={trial} />
        {trial.failure && (
          <p className={classes.failure}>
            {oneLine(trial.failure.summary)}
            {trial.failure.advice && (
              <span className={classes.fix}>Fix: {oneLine(trial.failure.advice)}</span>
            )}
          </p>
        )}
        {trial.finished_at === null ? (
          <Stop trial={trial} />
        ) : (
          trial.outcome !== "passed" && (
            <div>
              <Button variant="default" onClick={() => onAgain(trial)}>
                Change and try again
              </Button>
            </div>
          )
        )}
      </Section>
      {trial.outcome === "passed" && <Files trial={trial} />}
    </>
  );
}

function Steps({ trial }: { trial: DeviceTrial }) {
  const ended = new Map(trial.steps.map(each => [each.step, each]));
  const names = Object.keys(TITLES) as Step["step"][];
  const current = trial.finished_at === null ? names.find(each => !ended.has(each)) : undefined;
  return (
    <ol className={classes.steps} aria-label="Steps of the trial">
      {names.map(name => {
        const step = ended.get(name);
        const state = step ? MARKS[step.outcome] : name === current ? "now" : "waits";
        return (
          <li
            key={name}
            className={classes.step}
            data-state={state}
            aria-current={name === current ? "step" : undefined}
          >
            <span className={classes.name}>{TITLES[name]}</span>
            <span className={classes.mark}>{state}</span>
            <div className={classes.text}>
              {step
                ? oneLine(step.text)
                : name === current
                  ? oneLine(trial.doing || "waiting for the lab's worker")
                  : ""}
              {step?.fix && <span className={classes.fix}>Fix: {oneLine(step.fix)}</span>}
              {step?.console && (
                <details className={classes.console}>
                  <summary>End of the console</summary>
                  <pre>{step.console}</pre>
                </details>
              )}
            </div>
          </li>
        );
      })}
    </ol>
  );
}

function Stop({ trial }: { trial: DeviceTrial }) {
  const client = useQueryClient();
  const stop = useMutation({
    mutationFn: () =>
      dataOf(
        api.POST("/api/v1/device-trials/{trial_id}/cancel", { params: { path: { trial_id: trial.id } } }),
      ),
    onSettled: () => void client.invalidateQueries({ queryKey: trialQuery(trial.id).queryKey }),
  });
  return (
    <div>
      <Button variant="default" disabled={stop.isPending || stop.isSuccess} onClick={() => stop.mutate()}>
        {stop.isSuccess ? "Stopping; the machine is switched off" : "Stop the trial"}
      </Button>
    </div>
  );
}

function Files({ trial }: { trial: DeviceTrial }) {
  const written = trial.files.length > 0 && trial.files.every(each => each.written);
  const { name } = trial.device;
  return (
    <Section
      id="files"
      title="Files"
      lead={
        written
          ? "Written on the lab's host. The lab uses the machine after they are applied."
          : "To write on the lab's host: each text is what the file gets."
      }
    >
      {trial.refusal && <p className={classes.failure}>{trial.refusal}</p>}
      {trial.files.length === 0 && !trial.refusal && <p>Every file is up to date.</p>}
      {trial.files.map(file => (
        <details key={file.path} className={classes.file} open={!file.written}>
          <summary>
            {file.path} <span className={classes.mark}>{file.written ? "written" : "to write"}</span>
          </summary>
          <pre>{file.added}</pre>
        </details>
      ))}
      <p>
        Apply the files on the lab's host; running boots are interrupted. Then check the device, and see it on
        the page <Link to="/lab">Lab</Link>.
      </p>
      <CommandBlock
        commands={[{ name: "shell", text: `make up\nwqlab device check ${name}` }]}
        label="Apply and check"
      />
    </Section>
  );
}
