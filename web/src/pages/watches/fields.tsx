/** Fields of the form of a watch that every kind has, and parts of all fields. */
import { useQuery } from "@tanstack/react-query";
import { type ComponentProps, useId, useState } from "react";
import { deviceTypesQuery, plansQuery } from "@/api/queries";
import type { QuietHours } from "@/api/types";
import { Button, NativeSelect, Textarea, TextInput } from "@/kit";
import { linesOf, type WatchDraft } from "./draft";
import classes from "./watches.module.css";

interface LinesFieldProps {
  label: string;
  description: string;
  placeholder?: string;
  value: string;
  onChange(value: string): void;
  error: string | undefined;
  required?: boolean;
}

/** A list with one entry a line. */
export function LinesField({ label, value, onChange, error, required = false, ...text }: LinesFieldProps) {
  return (
    <Textarea
      label={label}
      {...text}
      value={value}
      error={error}
      onChange={event => onChange(event.currentTarget.value)}
      rows={Math.min(8, Math.max(2, value.split("\n").length))}
      required={required}
      withAsterisk={false}
      spellCheck={false}
      autoCapitalize="none"
      classNames={{ input: "mono" }}
    />
  );
}

/** Targets as `plan@device-type`, one a line, with two menus that write them. */
export function TargetsField(props: Omit<LinesFieldProps, "placeholder">) {
  const { value, onChange } = props;
  const { data: plans = [] } = useQuery(plansQuery);
  const { data: types = [] } = useQuery(deviceTypesQuery);
  const [plan, setPlan] = useState("");
  const [type, setType] = useState("");
  const planNames = plans.filter(each => !each.plan.checks_health).map(each => each.plan.name);
  const typeNames = types.filter(each => !each.generated).map(each => each.name);
  const target = `${plan || (planNames[0] ?? "")}@${type || (typeNames[0] ?? "")}`;
  const known = linesOf(value);
  return (
    <div className={classes.withTools}>
      <LinesField {...props} placeholder="xfs-fsync@xeon-2s" />
      {planNames.length > 0 && typeNames.length > 0 && (
        <div className={classes.tools}>
          <NativeSelect
            size="xs"
            aria-label="Plan of the target"
            data={planNames}
            value={plan || planNames[0]}
            onChange={event => setPlan(event.currentTarget.value)}
          />
          <span aria-hidden="true">@</span>
          <NativeSelect
            size="xs"
            aria-label="Device type of the target"
            data={typeNames}
            value={type || typeNames[0]}
            onChange={event => setType(event.currentTarget.value)}
          />
          <Button
            size="xs"
            variant="default"
            disabled={known.includes(target)}
            onClick={() => onChange([...known, target].join("\n"))}
          >
            Add target
          </Button>
        </div>
      )}
    </div>
  );
}

interface QuietHoursFieldProps {
  description: string;
  value: readonly QuietHours[];
  onChange(value: QuietHours[]): void;
  error: string | undefined;
}

/** A time in 24 hours, in every browser: fields for times show it as the browser's language does, with AM and PM. */
const CLOCK = {
  type: "text",
  inputMode: "numeric",
  pattern: "([01][0-9]|2[0-3]):[0-5][0-9]",
  title: "Hours and minutes, from 00:00 to 23:59",
  placeholder: "22:00",
  maxLength: 5,
  autoComplete: "off",
  required: true,
} as const;
/** The server allows this number. */
const HOURS_MAX = 5;

/** Times of each day, in UTC. */
export function QuietHoursField({ description, value, onChange, error }: QuietHoursFieldProps) {
  const id = useId();
  const change = (at: number, part: Partial<QuietHours>) =>
    onChange(value.map((each, index) => (index === at ? { ...each, ...part } : each)));
  return (
    <fieldset className={classes.hours} aria-describedby={error ? `${id}-error` : undefined}>
      <legend>Quiet hours</legend>
      <p className={classes.description}>{description}</p>
      {value.map(({ begins, ends }, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the times have no identity but their place
        <div className={classes.tools} key={at}>
          <label>
            from{" "}
            <input {...CLOCK} value={begins} onChange={event => change(at, { begins: event.target.value })} />
          </label>
          <label>
            to <input {...CLOCK} value={ends} onChange={event => change(at, { ends: event.target.value })} />
          </label>
          <span className="muted">UTC</span>
          <Button
            size="compact-xs"
            variant="default"
            aria-label={`Remove the quiet hours from ${begins} to ${ends}`}
            onClick={() => onChange(value.filter((_, index) => index !== at))}
          >
            Remove
          </Button>
        </div>
      ))}
      {error && (
        <p className={classes.mistake} id={`${id}-error`}>
          {error}
        </p>
      )}
      {value.length < HOURS_MAX && (
        <Button
          size="xs"
          variant="default"
          className={classes.addHours ?? ""}
          onClick={() => onChange([...value, { begins: "22:00", ends: "06:00" }])}
        >
          Add quiet hours
        </Button>
      )}
    </fieldset>
  );
}

interface NumberFieldProps {
  label: string;
  description: string;
  value: string;
  onChange(value: string): void;
  error: string | undefined;
  min: number;
  max: number;
  /** May be left empty. */
  optional?: boolean;
}

export function NumberField({ optional = false, ...others }: NumberFieldProps) {
  return (
    <TextField
      type="number"
      {...others}
      step={1}
      required={!optional}
      classNames={{ input: classes.short }}
    />
  );
}

interface TextFieldProps extends Omit<ComponentProps<typeof TextInput>, "onChange"> {
  onChange(value: string): void;
}

export function TextField({ onChange, ...others }: TextFieldProps) {
  return (
    <TextInput
      {...others}
      onChange={event => onChange(event.currentTarget.value)}
      withAsterisk={false}
      autoComplete="off"
      autoCapitalize="none"
      spellCheck={false}
    />
  );
}

/** What the fields of a watch need: the draft, its change, and the server's objection to a field of the request. */
export interface FieldsProps {
  draft: WatchDraft;
  change(part: Partial<WatchDraft>): void;
  at(field: string): string | undefined;
}

type TextName = {
  [Name in keyof WatchDraft]: WatchDraft[Name] extends string ? Name : never;
}[keyof WatchDraft];

/** The value of a text field, its change, and the server's objection, whose field has the same name in snake case. */
export function bind({ draft, change, at }: FieldsProps, name: Exclude<TextName, "kind" | "batch">) {
  return {
    value: draft[name],
    onChange: (value: string) => change({ [name]: value }),
    error: at(name.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)),
  };
}

interface TreeSelectProps extends FieldsProps {
  known: readonly string[];
  description: string;
}

/** The chosen tree stays an option if the lab no longer has it, and the server says so. */
export function TreeSelect({ draft, change, at, known, description }: TreeSelectProps) {
  return (
    <NativeSelect
      label="Tree"
      description={description}
      data={draft.tree === "" || known.includes(draft.tree) ? [...known] : [draft.tree, ...known]}
      value={draft.tree}
      onChange={event => change({ tree: event.currentTarget.value })}
      error={at("tree")}
    />
  );
}

/** Name, owner and summary. `named`: whether the watch is changed, not added: a name stays. */
export function IdentityFields({ named, ...fields }: FieldsProps & { named: boolean }) {
  return (
    <>
      <div className="pair">
        <TextField
          label="Name"
          description="Letters, digits, underscore, dot and dash"
          placeholder="workqueue"
          {...bind(fields, "name")}
          disabled={named}
          required
        />
        <TextField
          label="Owner"
          description="Account whose quota is used, and who owns the submissions"
          {...bind(fields, "owner")}
          required
        />
      </div>
      <TextField
        label="Summary"
        description="One line for the list of watches"
        {...bind(fields, "summary")}
        maxLength={300}
      />
    </>
  );
}
