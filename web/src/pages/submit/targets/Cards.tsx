import { Link } from "@tanstack/react-router";
import { type ReactNode, useId } from "react";
import type { DeviceTypeView, PlanView, TestPlan } from "@/api/types";
import { Checkbox } from "@/kit";
import { CONDITIONS } from "@/lib/devices";
import { count } from "@/lib/numbers";
import { TopologyDrawing } from "@/parts/topology/TopologyDrawing";
import { type Draft, nameOf, pairs } from "../draft/draft";
import { FieldError, fieldId, useFieldError } from "../draft/FieldError";
import type { ChangeDraft } from "../draft/useDraft";
import classes from "./Cards.module.css";

interface CardsProps {
  draft: Draft;
  change: ChangeDraft;
}

export function PlanCards({ plans, draft, change }: CardsProps & { plans: readonly PlanView[] }) {
  const known = plans.map(each => each.plan.name);
  // Health-check plans come last.
  const ordered = plans.toSorted((a, b) => Number(a.plan.checks_health) - Number(b.plan.checks_health));
  return (
    <div className={classes.cards}>
      {ordered.map(({ plan }) => (
        <Card
          key={plan.name}
          field={`plan:${plan.name}`}
          name={plan.name}
          checked={draft.plan.includes(plan.name)}
          onChange={on => change({ plan: toggled(draft.plan, plan.name, on) })}
        >
          <p>{plan.summary}</p>
          <p className={classes.fine}>{about(plan)}</p>
          <p className={classes.fine}>
            <Link to="/plans/$name" params={{ name: plan.name }} className={classes.link}>
              Metrics and script<span className="hidden-visually"> of {plan.name}</span>
            </Link>
          </p>
        </Card>
      ))}
      <Unknown kind="plan" names={draft.plan} known={known} onRemove={plan => change({ plan })} />
    </div>
  );
}

function about(plan: TestPlan): string {
  if (plan.checks_health) return "Health check of devices; compares no kernels.";
  const primary = (role: "role_hardware" | "role_emulated") =>
    plan.metrics.find(metric => metric[role] === "primary")?.name;
  const [hardware, emulated] = [primary("role_hardware"), primary("role_emulated")];
  const primaryMetrics =
    hardware === emulated
      ? `primary metric: ${hardware ?? "none"}`
      : `primary metric: ${[hardware && `${hardware} (hardware)`, emulated && `${emulated} (emulated)`].filter(Boolean).join(", ")}`;
  const axes = plan.axes ?? [];
  return [
    count(plan.scenarios.length, "scenario"),
    axes.length > 0 ? `knobs: ${axes.map(axis => axis.name).join(", ")}` : "no settings; requires a series",
    primaryMetrics,
  ].join("; ");
}

export function DeviceTypeCards({ types, draft, change }: CardsProps & { types: readonly DeviceTypeView[] }) {
  const known = types.map(each => each.name);
  return (
    <div className={classes.cards} data-drawn>
      {types.map(type => (
        <Card
          key={type.name}
          field={`type:${type.name}`}
          name={type.name}
          aside={type.modelled ? "modelled" : type.emulated ? "emulated" : "hardware"}
          checked={draft.type.includes(type.name)}
          onChange={on => change({ type: toggled(draft.type, type.name, on) })}
        >
          <p className={classes.fine}>{type.summary}</p>
          <div className={classes.drawing}>
            <TopologyDrawing layout={type.layout} name={type.name} stacked />
          </div>
          <DeviceCounts type={type} />
        </Card>
      ))}
      <Unknown kind="device type" names={draft.type} known={known} onRemove={type => change({ type })} />
    </div>
  );
}

function DeviceCounts({ type: { device_counts: counts, queued_runs } }: { type: DeviceTypeView }) {
  return (
    <dl className={classes.units}>
      {CONDITIONS.map(([kind, word]) => (
        <div key={kind} data-none={counts[kind] === 0 || undefined} data-kind={kind}>
          <dt>{word}</dt>
          <dd>{counts[kind]}</dd>
        </div>
      ))}
      <div data-none={queued_runs === 0 || undefined}>
        <dt>{queued_runs === 1 ? "run queued" : "runs queued"}</dt>
        <dd>{queued_runs}</dd>
      </div>
    </dl>
  );
}

/** Checkboxes to exclude single combinations of plan and device type. */
export function Targets({ draft, change }: CardsProps) {
  const all = pairs(draft);
  const someExcluded = all.some(pair => draft.without.includes(nameOf(pair)));
  if (draft.vary !== "" || (!someExcluded && (draft.plan.length < 2 || draft.type.length < 2))) {
    return all.map(pair => <FieldError key={nameOf(pair)} field={`target:${nameOf(pair)}`} />);
  }
  return (
    <fieldset className={classes.targets}>
      <legend>Targets</legend>
      <div className={classes.grid}>
        {all.map(pair => {
          const name = nameOf(pair);
          return (
            <div key={name}>
              <Checkbox
                size="xs"
                label={`${pair.plan} on ${pair.type}`}
                checked={!draft.without.includes(name)}
                onChange={event =>
                  change({ without: toggled(draft.without, name, !event.currentTarget.checked) })
                }
              />
              <FieldError field={`target:${name}`} />
            </div>
          );
        })}
      </div>
    </fieldset>
  );
}

interface CardProps {
  field: string;
  name: string;
  aside?: string;
  checked: boolean;
  onChange(on: boolean): void;
  children: ReactNode;
}

/** Card with a checkbox: the name is its label, the content its description. */
function Card({ field, name, aside, checked, onChange, children }: CardProps) {
  const id = useId();
  const error = useFieldError(field);
  return (
    <div
      className={classes.card}
      data-checked={checked || undefined}
      data-error={error !== undefined || undefined}
    >
      <div className={classes.head}>
        <input
          type="checkbox"
          id={fieldId(field)}
          className={classes.box}
          checked={checked}
          onChange={event => onChange(event.currentTarget.checked)}
          aria-describedby={`${id}-about`}
          aria-invalid={error !== undefined || undefined}
          aria-errormessage={error ? `${id}-error` : undefined}
        />
        <label htmlFor={fieldId(field)} className={classes.name}>
          {name}
        </label>
        {aside && <span className={classes.aside}>{aside}</span>}
      </div>
      <div id={`${id}-about`} className={classes.about}>
        {children}
      </div>
      <FieldError field={field} id={`${id}-error`} />
    </div>
  );
}

/** Cards for unknown names from the URL, so that they can be removed. */
function Unknown({
  kind,
  names,
  known,
  onRemove,
}: {
  kind: string;
  names: readonly string[];
  known: readonly string[];
  onRemove(rest: string[]): void;
}) {
  return names
    .filter(name => !known.includes(name))
    .map(name => (
      <Card
        key={name}
        field={`${kind === "plan" ? "plan" : "type"}:${name}`}
        name={name}
        checked
        onChange={() => onRemove(names.filter(each => each !== name))}
      >
        <p className={classes.fine}>This lab has no {kind} with this name.</p>
      </Card>
    ));
}

function toggled(names: readonly string[], name: string, on: boolean): string[] {
  return on ? [...names.filter(each => each !== name), name] : names.filter(each => each !== name);
}
