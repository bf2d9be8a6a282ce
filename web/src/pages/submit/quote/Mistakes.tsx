import { use, useEffect, useRef } from "react";
import { FaultsContext, fieldId } from "../draft/Fault";
import classes from "./Order.module.css";

/** After the button: what is wrong, each leading to its field. Whoever pressed it lands here. */
export function Mistakes({ presses }: { presses: number }) {
  const faults = use(FaultsContext);
  const box = useRef<HTMLDivElement>(null);
  const shown = presses > 0 && faults.size > 0;
  const led = useRef(0);
  // Once for each press, at once or when the server has answered; not when a mistake comes while the form is mended.
  useEffect(() => {
    if (!shown || led.current === presses) return;
    led.current = presses;
    box.current?.focus();
  }, [shown, presses]);
  if (!shown) return null;
  return (
    <div className={classes.refusal} role="alert" tabIndex={-1} ref={box}>
      <p>
        <strong>Not submitted yet.</strong>
      </p>
      <ul>
        {[...faults].flatMap(([field, said]) =>
          said.map(detail => (
            <li key={`${field} ${detail}`}>
              {field === "" ? (
                detail
              ) : (
                <a
                  href={`#${fieldId(field)}`}
                  onClick={event => {
                    event.preventDefault();
                    goTo(field);
                  }}
                >
                  {detail}
                </a>
              )}
            </li>
          )),
        )}
      </ul>
    </div>
  );
}

/** To the field, or to the first thing of its group that can be used. */
function goTo(field: string) {
  const found = document.getElementById(fieldId(field)) ?? document.getElementById("plans");
  // What is folded away is unfolded.
  for (let fold = found?.closest("details"); fold; fold = fold.parentElement?.closest("details"))
    fold.open = true;
  const usable = found?.matches("input, select, textarea, button")
    ? found
    : found?.querySelector<HTMLElement>("input, select, textarea, button");
  usable?.focus({ preventScroll: true });
  (usable ?? found)?.scrollIntoView({ block: "center" });
}
