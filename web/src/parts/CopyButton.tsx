import { useEffect, useState } from "react";
import { copyText } from "@/lib/clipboard";
import classes from "./CopyButton.module.css";
import { announce } from "./LiveRegion";

interface CopyButtonProps {
  /** Text to copy; a function is called on click and may request the text from the API. */
  text: string | (() => string | Promise<string>);
  /** Label of the button: `Copy`, `Copy as text`. */
  label?: string;
  /** Accessible name, if the label alone is not specific enough: `Copy the command`. */
  name?: string;
}

/** Button that copies text to the clipboard and shows the result. */
export function CopyButton({ text, label = "Copy", name }: CopyButtonProps) {
  const [state, setState] = useState<"idle" | "copied" | "failed">("idle");
  useEffect(() => {
    if (state === "idle") return;
    const timer = setTimeout(() => setState("idle"), 2000);
    return () => clearTimeout(timer);
  }, [state]);

  const copy = async () => {
    const copied = await Promise.resolve(typeof text === "function" ? text() : text)
      .then(copyText)
      .catch(() => false);
    setState(copied ? "copied" : "failed");
    announce(copied ? "Copied" : "Copy failed");
  };
  return (
    <button type="button" className="button no-print" aria-label={name} onClick={() => void copy()}>
      {/* The longest label reserves the width, so that the layout does not shift. */}
      <span className={classes.placeholder} aria-hidden="true">
        {label.length > 10 ? label : "Copy failed"}
      </span>
      <span className={classes.word}>
        {state === "idle" ? label : state === "copied" ? "Copied" : "Copy failed"}
      </span>
    </button>
  );
}
