import { use, useState } from "react";
import type { DeviceTypeView, Profile, TestPlan } from "@/api/types";
import { Checkbox, NativeSelect, TextInput } from "@/kit";
import { Scroll } from "@/parts/Scroll";
import {
  type Draft,
  nameOf,
  type Options,
  optionValues,
  parameters,
  withChosen,
  withParameter,
} from "../draft/draft";
import { FieldError, FieldErrorsContext, fieldId, useFieldError } from "../draft/FieldError";
import type { ChangeDraft } from "../draft/useDraft";
import classes from "./Advanced.module.css";
import { combinations } from "./settings";

interface PlanOptionsProps {
  plan: TestPlan;
  /** Selected device types. */
  types: readonly DeviceTypeView[];
  draft: Draft;
  change: ChangeDraft;
}

/** Scenarios, settings and parameters of a plan, for all device types or for one. */
export function PlanOptions({ plan, types, draft, change }: PlanOptionsProps) {
  const [only, setOnly] = useState("");
  const type = types.find(each => each.name === only);
  const own = type ? nameOf({ plan: plan.name, type: type.name }) : plan.name;
  const profiles = profilesOf(plan, type ? [type] : types);
  const part = { plan, own, profiles, draft, change };
  return (
    <fieldset className={classes.plan}>
      <legend>{plan.name}</legend>
      {types.length > 1 && (
        <NativeSelect
          className={classes.holder as string}
          size="xs"
          label="Apply to"
          value={type ? only : ""}
          onChange={event => setOnly(event.currentTarget.value)}
          data={[
            { value: "", label: "All device types" },
            ...types.map(each => ({ value: each.name, label: `${each.name} only` })),
          ]}
        />
      )}
      {!type && <TypesWithOwnChoices plan={plan} types={types} draft={draft} onShow={setOnly} />}
      {plan.scenarios.length > 1 && <Scenarios {...part} />}
      {(plan.axes ?? []).length > 0 && <Settings {...part} />}
      <ParameterFields {...part} />
    </fieldset>
  );
}

interface TypesWithOwnChoicesProps extends Pick<PlanOptionsProps, "plan" | "types" | "draft"> {
  onShow(type: string): void;
}

/** Links to device types with their own options, and the errors of those options. */
function TypesWithOwnChoices({ plan, types, draft, onShow }: TypesWithOwnChoicesProps) {
  const errors = use(FieldErrorsContext);
  const differing = types.filter(type => hasOwnChoices(draft, nameOf({ plan: plan.name, type: type.name })));
  return differing.map(type => {
    const own = nameOf({ plan: plan.name, type: type.name });
    const fields = [...errors.keys()].filter(field => belongsTo(field, own));
    return (
      <div key={type.name} className={classes.group}>
        <button type="button" className={classes.back} onClick={() => onShow(type.name)}>
          {type.name} overrides these options
        </button>
        {fields.map(field => (
          <div key={field} id={fieldId(field)}>
            <FieldError field={field} />
          </div>
        ))}
      </div>
    );
  });
}

const OPTIONS: readonly Options[] = ["scenario", "setting", "param"];

function belongsTo(field: string, holder: string): boolean {
  return OPTIONS.some(option => field === `${option}:${holder}` || field.startsWith(`${option}:${holder}:`));
}

function hasOwnChoices(draft: Draft, holder: string): boolean {
  return OPTIONS.some(option => optionValues(draft, option, holder) !== null);
}

interface PartProps {
  plan: TestPlan;
  /** The plan's name, or `plan@type`. */
  own: string;
  profiles: readonly Profile[];
  draft: Draft;
  change: ChangeDraft;
}

function profilesOf(plan: TestPlan, types: readonly DeviceTypeView[]): Profile[] {
  const emulated = new Set(types.map(type => type.emulated));
  return [...(emulated.has(false) ? [plan.hardware] : []), ...(emulated.has(true) ? [plan.emulated] : [])];
}

function Scenarios({ plan, own, profiles, draft, change }: PartProps) {
  const all = plan.scenarios.map(scenario => scenario.name);
  const defaults = profiles[0]?.scenarios ?? all;
  const differ = profiles.some(profile => (profile.scenarios ?? all).join() !== defaults.join());
  const { now, set, reset } = useList("scenario", plan, own, draft, change, differ ? [] : defaults);
  return (
    <fieldset className={classes.group} id={fieldId(`scenario:${own}`)}>
      <legend>
        Scenarios
        {differ && own === plan.name ? " (defaults differ between hardware and emulated devices)" : ""}
      </legend>
      <div className={classes.choices}>
        {plan.scenarios.map(({ name, summary }) => (
          <Checkbox
            key={name}
            size="xs"
            label={name}
            description={summary}
            checked={now.includes(name)}
            onChange={event =>
              set(all.filter(each => (each === name ? event.currentTarget.checked : now.includes(each))))
            }
          />
        ))}
      </div>
      {reset}
      <FieldError field={`scenario:${own}`} />
    </fieldset>
  );
}

function Settings({ plan, own, profiles, draft, change }: PartProps) {
  const axes = plan.axes ?? [];
  const { rows, columns, cell } = combinations(axes);
  const all = rows.flatMap(row => columns.map(column => cell(row, column)));
  const defaults = profiles[0]?.settings ?? [];
  const differ = profiles.some(profile => profile.settings.join() !== defaults.join());
  const { now, set, reset } = useList("setting", plan, own, draft, change, differ ? [] : defaults);
  const toggle = (setting: string, on: boolean) =>
    set(all.filter(each => (each === setting ? on : now.includes(each))));
  return (
    <fieldset className={classes.group} id={fieldId(`setting:${own}`)}>
      <legend>
        Settings
        {differ && own === plan.name ? " (defaults differ between hardware and emulated devices)" : ""}
      </legend>
      <Scroll name={`Settings of ${own}`} className={classes.knobs}>
        <table>
          <caption className="hidden-visually">Settings of {own}</caption>
          <thead>
            <tr>
              <th scope="col">{axes[0]?.name}</th>
              {columns.map(column => (
                <th key={column} scope="col" className="mono">
                  {column || "measured"}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map(row => (
              <tr key={row}>
                <th scope="row" className="mono">
                  {row}
                </th>
                {columns.map(column => {
                  const setting = cell(row, column);
                  return (
                    <td key={column}>
                      <Checkbox
                        size="xs"
                        aria-label={setting}
                        label={
                          setting === plan.reference_setting ? (
                            <span className={classes.reference}>reference</span>
                          ) : undefined
                        }
                        checked={now.includes(setting)}
                        onChange={event => toggle(setting, event.currentTarget.checked)}
                      />
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
      {reset}
      <FieldError field={`setting:${own}`} />
    </fieldset>
  );
}

/** State of a list option: the plan's default until changed; can be reset. */
function useList(
  option: Options,
  plan: TestPlan,
  own: string,
  draft: Draft,
  change: ChangeDraft,
  defaults: readonly string[],
) {
  const mine = optionValues(draft, option, own);
  const inherited = optionValues(draft, option, plan.name) ?? defaults;
  const set = (values: string[] | null) => change(before => withChosen(before, option, own, values));
  return {
    now: mine ?? inherited,
    set,
    reset: mine !== null && (
      <button type="button" className={classes.back} onClick={() => set(null)}>
        {own === plan.name ? "Reset to plan defaults" : "Reset to all device types"}
      </button>
    ),
  };
}

function ParameterFields({ plan, own, profiles, draft, change }: PartProps) {
  const ofScenarios = new Set(plan.scenarios.flatMap(scenario => Object.keys(scenario.parameters ?? {})));
  const ofProfiles = new Set(profiles.flatMap(profile => Object.keys(profile.parameters ?? {})));
  const names = [...ofProfiles].filter(name => !ofScenarios.has(name));
  const ownValues = parameters(draft, own);
  const inherited = parameters(draft, plan.name);
  // Include unknown names from the URL; the server reports the error.
  const all = [...names, ...[...ownValues.keys()].filter(name => !names.includes(name))];
  if (all.length === 0) return null;
  return (
    <fieldset className={classes.group}>
      <legend>Parameters (leave empty for plan defaults)</legend>
      <div className={classes.parameters}>
        {all.map(name => (
          <ParameterField
            key={name}
            name={name}
            own={own}
            defaults={
              own === plan.name
                ? defaultOf(profiles, name)
                : (inherited.get(name) ?? defaultOf(profiles, name))
            }
            value={ownValues.get(name) ?? ""}
            onChange={value => change(before => withParameter(before, own, name, value))}
          />
        ))}
      </div>
    </fieldset>
  );
}

interface ParameterFieldProps {
  name: string;
  own: string;
  defaults: string;
  value: string;
  onChange(value: string): void;
}

function ParameterField({ name, own, defaults, value, onChange }: ParameterFieldProps) {
  const field = `param:${own}:${name}`;
  return (
    <TextInput
      id={fieldId(field)}
      size="xs"
      label={<code>{name}</code>}
      placeholder={defaults}
      spellCheck={false}
      autoCapitalize="none"
      value={value}
      onChange={event => onChange(event.currentTarget.value)}
      error={useFieldError(field)}
    />
  );
}

/** Format the default value: `480`, or `60 or 0` if hardware and emulated devices differ. */
function defaultOf(profiles: readonly Profile[], name: string): string {
  const values = profiles.map(profile => profile.parameters?.[name]).filter(value => value !== undefined);
  return [...new Set(values.map(String))].join(" or ");
}
