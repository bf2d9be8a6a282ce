import { useEffect, useState } from "react";
import type { DeviceTypeView, KernelRecipe, PlanView } from "@/api/types";
import { NativeSelect, TextInput } from "@/kit";
import { PlanOptions } from "../targets/PlanOptions";
import classes from "./Advanced.module.css";
import { DEFAULT_PRIORITY, type Draft } from "./draft";
import { fieldId, useFault } from "./Fault";
import type { ChangeDraft } from "./useDraft";

interface AdvancedProps {
  plans: readonly PlanView[];
  types: readonly DeviceTypeView[];
  recipes: readonly KernelRecipe[];
  draft: Draft;
  change: ChangeDraft;
}

/** What most leave alone: how many blocks, how urgent, which kind of kernel, and what of a plan is measured with which parameters. */
export function Advanced({ plans, types, recipes, draft, change }: AdvancedProps) {
  const used = inUse(draft);
  const [open, setOpen] = useState(used > 0);
  // Nothing that counts is hidden: an address or a mistake that sets something shows it.
  const blocksFault = useFault("blocks");
  const priorityFault = useFault("priority");
  const recipeFault = useFault("recipe");
  const backendFault = useFault("backend");
  const mustShow =
    used > 0 || [blocksFault, priorityFault, recipeFault, backendFault].some(fault => fault !== undefined);
  useEffect(() => {
    if (mustShow) setOpen(true);
  }, [mustShow]);

  const chosenPlans = plans.filter(each => draft.plan.includes(each.plan.name));
  const chosenTypes = types.filter(type => draft.type.includes(type.name));
  const blocks = new Set(
    chosenPlans.flatMap(({ plan }) =>
      chosenTypes.map(type => (type.emulated ? plan.emulated : plan.hardware).blocks ?? 6),
    ),
  );
  return (
    <details className={classes.advanced} open={open} onToggle={event => setOpen(event.currentTarget.open)}>
      <summary className={classes.summary}>
        <h2>Advanced</h2>
        <span className="muted">
          {used === 0
            ? "scenarios, settings, blocks, parameters, priority, kernel recipe, backend"
            : `${used} changed`}
        </span>
      </summary>
      <div className={classes.inside}>
        <div className={classes.numbers}>
          <TextInput
            id={fieldId("blocks")}
            label="Blocks"
            description="A block is one boot of each kernel, on the same device. More find smaller differences."
            placeholder={blocks.size > 0 ? `${[...blocks].join(" or ")}, by the plan` : "by the plan"}
            inputMode="numeric"
            value={draft.blocks}
            onChange={event => change({ blocks: event.currentTarget.value })}
            error={blocksFault}
          />
          <TextInput
            id={fieldId("priority")}
            label="Priority"
            description="0 to 100. The highest goes first; waiting raises it, devices that you hold lower it."
            placeholder={String(DEFAULT_PRIORITY)}
            inputMode="numeric"
            value={draft.priority}
            onChange={event => change({ priority: event.currentTarget.value })}
            error={priorityFault}
          />
          <RecipeField recipes={recipes} value={draft.recipe} error={recipeFault} change={change} />
          <BackendField value={draft.backend} error={backendFault} change={change} />
        </div>
        {chosenPlans.length === 0 ? (
          <p className="muted">Choose a plan to see its scenarios, settings and parameters.</p>
        ) : (
          chosenPlans.map(({ plan }) => (
            <PlanOptions key={plan.name} plan={plan} types={chosenTypes} draft={draft} change={change} />
          ))
        )}
      </div>
    </details>
  );
}

interface RecipeFieldProps {
  recipes: readonly KernelRecipe[];
  value: string;
  error: string | undefined;
  change: ChangeDraft;
}

function RecipeField({ recipes, value, error, change }: RecipeFieldProps) {
  const names = recipes.map(each => each.name);
  const chosen = recipes.find(each => each.name === value);
  return (
    <NativeSelect
      id={fieldId("recipe")}
      label="Kernel recipe"
      description={
        chosen ? `${chosen.summary}.` : "How the kernels are configured. Each device type has its own."
      }
      value={value}
      onChange={event => change({ recipe: event.currentTarget.value })}
      data={[
        { value: "", label: "the device types' own" },
        // A name that an address brought shows as it is; the server says what is wrong with it.
        ...(value === "" || names.includes(value) ? names : [value, ...names]),
      ]}
      error={error}
    />
  );
}

const BACKENDS = ["labgrid", "lava"];

function BackendField({ value, error, change }: Omit<RecipeFieldProps, "recipes">) {
  return (
    <NativeSelect
      id={fieldId("backend")}
      label="Devices reached by"
      description="Of this lab by labgrid, or of a LAVA lab."
      value={value}
      onChange={event => change({ backend: event.currentTarget.value })}
      data={[
        { value: "", label: "whichever has the shortest queue" },
        ...(value === "" || BACKENDS.includes(value) ? BACKENDS : [value, ...BACKENDS]),
      ]}
      error={error}
    />
  );
}

/** How many things differ from what the plans say. */
function inUse(draft: Draft): number {
  const holders = new Set(
    (["scenario", "setting"] as const).flatMap(option =>
      draft[option].map(each => `${option}:${each.slice(0, each.indexOf(":"))}`),
    ),
  );
  const typed = [draft.blocks, draft.priority, draft.recipe, draft.backend].filter(
    value => value.trim() !== "",
  );
  return holders.size + draft.param.length + typed.length;
}
