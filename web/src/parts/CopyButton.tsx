import { useEffect, useState } from "react";
import { copyText } from "@/lib/clipboard";
import classes from "./CopyButton.module.css";
import { announce } from "./LiveRegion";

interface CopyButtonProps {
  /** What is copied; a function is called at the press, and may have to ask the lab. */
  text: string | (() => string | Promise<string>);
  /** The button's word, and what was copied: `Copy`, `Copy as text`. */
  label?: string;
  /** For screen readers where the word alone says too little: `Copy the command`. */
  name?: string;
}

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
    announce(copied ? "Copied" : "It could not be copied");
  };
  return (
    <button
      type="button"
      className={`${classes.button} no-print`}
      aria-label={name}
      onClick={() => void copy()}
    >
      {/* The longest word keeps the room, so that nothing moves. */}
      <span className={classes.room} aria-hidden="true">
        {label.length > 10 ? label : "Not copied"}
      </span>
      <span className={classes.word}>
        {state === "idle" ? label : state === "copied" ? "Copied" : "Not copied"}
      </span>
    </button>
  );
}
