import { Link } from "@tanstack/react-router";
import type { TreeView } from "@/api/types";
import { NativeSelect } from "@/kit";
import { oneLine } from "@/lib/words";
import { RelativeTime } from "@/parts/RelativeTime";
import { fieldId, useFault } from "../draft/Fault";
import classes from "./TreeField.module.css";

/** The tree a series is for, with what the lab knows of its head. */
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
        // A name that an address brought shows as it is; the server says what is wrong with it.
        data={names.includes(value) ? names : [value, ...names]}
        error={useFault("tree")}
      />
      <p className="muted">
        {chosen && (
          <>
            {chosen.tree.summary}.{" "}
            {chosen.base_commit ? (
              <>
                Its head is <code title={chosen.base_commit}>{chosen.base_commit.slice(0, 12)}</code>
                {chosen.release && <>, {oneLine(chosen.release)}</>}, as of{" "}
                <RelativeTime at={chosen.resolved_at} absent="an unknown time" />.
              </>
            ) : (
              "Its head was never looked at here."
            )}{" "}
          </>
        )}
        <Link to="/trees">All trees</Link>
      </p>
    </div>
  );
}
