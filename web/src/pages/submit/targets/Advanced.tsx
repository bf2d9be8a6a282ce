import { useEffect, useState } from "react";
import type { DeviceTypeView, KernelRecipe, PlanView } from "@/api/types";
import { Checkbox, NativeSelect, TextInput } from "@/kit";
import { DEFAULT_PRIORITY, type Draft } from "../draft/draft";
import { fieldId, useFieldError } from "../draft/FieldError";
import type { ChangeDraft } from "../draft/useDraft";
import classes from "./Advanced.module.css";
import { PlanOptions } from "./PlanOptions";

interface AdvancedProps {
  plans: readonly PlanView[];
  types: readonly DeviceTypeView[];
  recipes: readonly KernelRecipe[];
  draft: Draft;
  change: ChangeDraft;
}

/** Advanced options: blocks, layouts, priority, kernel recipe, backend, and each plan's scenarios, settings and parameters. */
export function Advanced({ plans, types, recipes, draft, change }: AdvancedProps) {
  const used = countChanges(draft);
  const [open, setOpen] = useState(used > 0);
  // Open if the URL sets an option or an option has an error.
  const blocksError = useFieldError("blocks");
  const layoutsError = useFieldError("layouts");
  const priorityError = useFieldError("priority");
  const recipeError = useFieldError("recipe");
  const backendError = useFieldError("backend");
  const walkError = useFieldError("walk");
  const mustShow =
    used > 0 ||
    [blocksError, layoutsError, priorityError, recipeError, backendError, walkError].some(
      error => error !== undefined,
    );
  useEffect(() => {
    if (mustShow) setOpen(true);
  }, [mustShow]);

  const chosenPlans = plans.filter(each => draft.plan.includes(each.plan.name));
  const chosenTypes = draft.vary === "" ? types.filter(type => draft.type.includes(type.name)) : [];
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
            ? "Scenarios, settings, blocks, layouts, parameters, priority, kernel recipe, backend"
            : `${used} changed`}
        </span>
      </summary>
      <div className={classes.inside}>
        <div className={classes.numbers}>
          <TextInput
            id={fieldId("blocks")}
            label="Blocks"
            description="One boot of each kernel on the same device. More blocks detect smaller differences. Several numbers, such as 6,10,16, are looks after which a run may stop early."
            placeholder={blocks.size > 0 ? `${[...blocks].join(" or ")} (plan default)` : "plan default"}
            inputMode="numeric"
            value={draft.blocks}
            onChange={event => change({ blocks: event.currentTarget.value })}
            error={blocksError}
          />
          <TextInput
            id={fieldId("layouts")}
            label="Layouts"
            description="1 to 8; by default as many as blocks on instrumented devices, and 1 on others. Both kernels are linked in so many layouts, and each block boots another one, so that the effect of alignment is averaged."
            placeholder="1"
            inputMode="numeric"
            value={draft.layouts}
            onChange={event => change({ layouts: event.currentTarget.value })}
            error={layoutsError}
          />
          <TextInput
            id={fieldId("priority")}
            label="Priority"
            description="0 to 100; higher runs first. Waiting raises the score, devices you hold lower it."
            placeholder={String(DEFAULT_PRIORITY)}
            inputMode="numeric"
            value={draft.priority}
            onChange={event => change({ priority: event.currentTarget.value })}
            error={priorityError}
          />
          <RecipeField recipes={recipes} value={draft.recipe} error={recipeError} change={change} />
          <BackendField value={draft.backend} error={backendError} change={change} />
          <Checkbox
            id={fieldId("walk")}
            label="Patch by patch"
            description="Measure each patch against the one before: a block boots the base and the kernel after each patch. For 2 to 16 patches."
            checked={draft.walk === "patch"}
            onChange={event => change({ walk: event.currentTarget.checked ? "patch" : "" })}
            error={walkError}
          />
          <Checkbox
            id={fieldId("trace")}
            label="Traced boots"
            description="If a figure differs, boot both kernels twice more with tracing and report what else differs. They never enter the verdict."
            checked={draft.trace !== "no"}
            onChange={event => change({ trace: event.currentTarget.checked ? "" : "no" })}
          />
          <NativeSelect
            id={fieldId("identical")}
            label="Byte-identical kernels"
            description="A series may change no byte of the kernel, for example only a comment."
            value={draft.identical}
            onChange={event => change({ identical: event.currentTarget.value as Draft["identical"] })}
            data={[
              { value: "skip", label: "Report as no change, without a boot" },
              { value: "measure", label: "Measure anyway" },
            ]}
          />
        </div>
        {chosenPlans.length === 0 ? (
          <p className="muted">Select a plan to see its scenarios, settings and parameters.</p>
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
        chosen ? `${chosen.summary}.` : "How the kernels are configured. Each device type has a default."
      }
      value={value}
      onChange={event => change({ recipe: event.currentTarget.value })}
      data={[
        { value: "", label: "Default of each device type" },
        // Keep an unknown name from the URL; the server reports the error.
        ...(value === "" || names.includes(value) ? names : [value, ...names]),
      ]}
      error={error}
    />
  );
}

const BACKENDS = ["labgrid", "lava", "instrumented"];

function BackendField({ value, error, change }: Omit<RecipeFieldProps, "recipes">) {
  return (
    <NativeSelect
      id={fieldId("backend")}
      label="Backend"
      description="Devices controlled through labgrid or by a LAVA lab, or instrumented devices."
      value={value}
      onChange={event => change({ backend: event.currentTarget.value })}
      data={[
        { value: "", label: "Shortest queue" },
        ...(value === "" || BACKENDS.includes(value) ? BACKENDS : [value, ...BACKENDS]),
      ]}
      error={error}
    />
  );
}

/** Count the options that differ from the plans' defaults. */
function countChanges(draft: Draft): number {
  const holders = new Set(
    (["scenario", "setting"] as const).flatMap(option =>
      draft[option].map(each => `${option}:${each.slice(0, each.indexOf(":"))}`),
    ),
  );
  const typed = [draft.blocks, draft.layouts, draft.priority, draft.recipe, draft.backend].filter(
    value => value.trim() !== "",
  );
  return (
    holders.size +
    draft.param.length +
    typed.length +
    Number(draft.identical !== "skip") +
    Number(draft.walk !== "") +
    Number(draft.trace !== "")
  );
}
