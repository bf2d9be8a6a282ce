import type { TreeView } from "@/api/types";
import { NativeSelect } from "@/kit";
import { oneLine } from "@/lib/words";
import { FailureCard } from "@/parts/FailureCard";
import { RelativeTime } from "@/parts/RelativeTime";
import { fieldId, useFieldError } from "../draft/FieldError";
import classes from "./TreeField.module.css";

/** Select field for the tree, with the tree's last known head. */
export function TreeField({
  trees,
  value,
  onChange,
}: {
  trees: readonly TreeView[];
  value: string;
  onChange(name: string): void;
}) {
  const names = trees.map(each => each.tree.name);
  const chosen = trees.find(each => each.tree.name === value);
  return (
    <div className={classes.field}>
      <NativeSelect
        id={fieldId("tree")}
        aria-label="Tree"
        value={value}
        onChange={event => onChange(event.currentTarget.value)}
        // Keep an unknown name from the URL; the server reports the error.
        data={names.includes(value) ? names : [value, ...names]}
        error={useFieldError("tree")}
      />
      <p className="muted">
        {chosen && (
          <>
            {chosen.tree.summary}.{" "}
            {chosen.base_commit ? (
              <>
                Head: <code title={chosen.base_commit}>{chosen.base_commit.slice(0, 12)}</code>
                {chosen.release && <>, {oneLine(chosen.release)}</>}, fetched{" "}
                <RelativeTime at={chosen.resolved_at} absent="at an unknown time" />.
              </>
            ) : (
              "Not fetched yet."
            )}
          </>
        )}
      </p>
      {chosen?.failure && <FailureCard failure={chosen.failure} what="last fetch" />}
    </div>
  );
}
