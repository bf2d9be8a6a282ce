import { NativeSelect, TextInput } from "@/kit";
import { DIMENSIONS, type Dimension, type Draft } from "../draft/draft";
import { fieldId, useFieldError } from "../draft/FieldError";
import type { ChangeDraft } from "../draft/useDraft";
import classes from "./SweepFields.module.css";

interface SweepFieldsProps {
  draft: Draft;
  change: ChangeDraft;
}

const NAMES: Record<Dimension, string> = {
  l3: "L3 domains",
  nodes: "NUMA nodes",
  cpus: "CPUs",
  shard: "Cores in a cache shard",
};
const DEFAULTS: Record<Dimension, string> = { l3: "4", nodes: "1", cpus: "16", shard: "8" };
const EXAMPLES: Record<Dimension, string> = {
  l3: "1, 2, 4, 8",
  nodes: "1, 2, 4",
  cpus: "8, 16, 32",
  shard: "2, 4, 8",
};

/** A sweep: one dimension of an instrumented or modelled topology varies, the others stay. */
export function SweepFields({ draft, change }: SweepFieldsProps) {
  const { vary } = draft;
  const varyError = useFieldError("vary");
  const valuesError = useFieldError("values");
  const costsError = useFieldError("costs");
  return (
    <fieldset className={classes.sweep}>
      <legend className="hidden-visually">Sweep</legend>
      <NativeSelect
        id={fieldId("vary")}
        label="Sweep"
        description="Measure on a family of emulated topologies instead of device types, for each metric over the topology."
        value={vary}
        onChange={event => change({ vary: event.currentTarget.value as Draft["vary"] })}
        data={[
          { value: "", label: "No sweep: the device types below" },
          ...DIMENSIONS.map(each => ({ value: each, label: `Over ${NAMES[each]}` })),
        ]}
        error={varyError}
      />
      {vary !== "" && (
        <div className={classes.numbers}>
          <TextInput
            id={fieldId("values")}
            label={NAMES[vary]}
            description="2 to 8 numbers"
            placeholder={EXAMPLES[vary]}
            inputMode="numeric"
            value={draft.values}
            onChange={event => change({ values: event.currentTarget.value })}
            error={valuesError}
          />
          {DIMENSIONS.filter(each => each !== vary).map(each => (
            <BaseField key={each} dimension={each} draft={draft} change={change} />
          ))}
          <TextInput
            id={fieldId("costs")}
            label="Cost profile"
            description="to model speed, ryzen-3900x"
            placeholder="counts only"
            value={draft.costs}
            onChange={event => change({ costs: event.currentTarget.value })}
            error={costsError}
          />
        </div>
      )}
    </fieldset>
  );
}

function BaseField({ dimension, draft, change }: SweepFieldsProps & { dimension: Dimension }) {
  return (
    <TextInput
      id={fieldId(dimension)}
      label={NAMES[dimension]}
      description="the same at all points"
      placeholder={DEFAULTS[dimension]}
      inputMode="numeric"
      value={draft[dimension]}
      onChange={event => change({ [dimension]: event.currentTarget.value })}
      error={useFieldError(dimension)}
    />
  );
}
