import { type KeyboardEvent, useId, useState } from "react";
import classes from "./CommandBlock.module.css";
import { CopyButton } from "./CopyButton";
import { Scroll } from "./Scroll";

export interface Command {
  /** Label of the tab: `wqlab`, `curl`. */
  name: string;
  text: string;
}

/** A command to copy, in one or more forms. */
export function CommandBlock({
  commands,
  label = "Command",
}: {
  commands: readonly Command[];
  label?: string;
}) {
  const [selected, setSelected] = useState(0);
  const id = useId();
  const shown = commands[Math.min(selected, commands.length - 1)];
  if (!shown) return null;

  const onKey = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = (selected + step + commands.length) % commands.length;
    setSelected(next);
    document.getElementById(`${id}-tab-${next}`)?.focus();
  };
  return (
    <div className={classes.block}>
      <div className={classes.head}>
        {commands.length > 1 ? (
          <div role="tablist" aria-label={label} className={classes.tabs}>
            {commands.map(({ name }, at) => (
              <button
                key={name}
                type="button"
                role="tab"
                id={`${id}-tab-${at}`}
                aria-selected={at === selected}
                aria-controls={`${id}-panel`}
                tabIndex={at === selected ? 0 : -1}
                className={classes.tab}
                onClick={() => setSelected(at)}
                onKeyDown={onKey}
              >
                {name}
              </button>
            ))}
          </div>
        ) : (
          <span className="muted">{shown.name}</span>
        )}
        <CopyButton text={shown.text} name={`Copy the ${shown.name} command`} />
      </div>
      <div {...(commands.length > 1 ? panel(id, selected) : {})}>
        <Scroll name={`${label}: ${shown.name}`} className={classes.text}>
          <pre>{shown.text}</pre>
        </Scroll>
      </div>
    </div>
  );
}

function panel(id: string, selected: number) {
  return { role: "tabpanel", id: `${id}-panel`, "aria-labelledby": `${id}-tab-${selected}` };
}
