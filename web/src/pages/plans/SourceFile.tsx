import { useNavigate, useRouterState } from "@tanstack/react-router";
import { type MouseEvent, useEffect, useRef, useState } from "react";
import { count } from "@/lib/numbers";
import { clean } from "@/lib/words";
import { CopyButton } from "@/parts/CopyButton";
import { Scroll } from "@/parts/Scroll";
import { hashOf, linesOf } from "./lines";
import classes from "./SourceFile.module.css";

/** Show a file with a link for each line. Shift-click extends the link to a range. */
export function SourceFile({
  name,
  text,
  open: initiallyOpen,
}: {
  name: string;
  text: string;
  open: boolean;
}) {
  const hash = useRouterState({ select: state => state.location.hash });
  const navigate = useNavigate();
  const chosen = linesOf(hash);
  const here = chosen?.file === name ? chosen : null;
  const [open, setOpen] = useState(initiallyOpen || here !== null);
  const first = useRef<HTMLLIElement>(null);
  const lines = clean(text).replace(/\n$/, "").split("\n");

  const from = here?.from;
  useEffect(() => {
    if (from === undefined) return;
    setOpen(true);
    first.current?.scrollIntoView({ block: "center" });
  }, [from]);

  const extend = (event: MouseEvent, line: number) => {
    if (!event.shiftKey || !here) return;
    event.preventDefault();
    const range = { file: name, from: Math.min(here.from, line), to: Math.max(here.from, line) };
    void navigate({
      to: ".",
      hash: hashOf(range),
      replace: true,
      resetScroll: false,
      hashScrollIntoView: false,
    });
  };

  return (
    <details className={classes.file} open={open} onToggle={event => setOpen(event.currentTarget.open)}>
      <summary className={classes.head}>
        <span className={classes.name}>{name}</span>
        <span className="muted">{count(lines.length, "line")}</span>
      </summary>
      <div className={classes.copy}>
        <CopyButton text={text} name={`Copy ${name}`} />
      </div>
      <Scroll name={name} className={classes.text}>
        <ol className={classes.lines}>
          {lines.map((line, at) => {
            const number = at + 1;
            const marked = here !== null && number >= here.from && number <= here.to;
            return (
              <li
                // biome-ignore lint/suspicious/noArrayIndexKey: lines are identified by their number
                key={at}
                ref={here?.from === number ? first : undefined}
                className={classes.line}
                data-marked={marked || undefined}
              >
                <a
                  className={classes.number}
                  href={`#${hashOf({ file: name, from: number, to: number })}`}
                  aria-current={marked ? "location" : undefined}
                  onClick={event => extend(event, number)}
                >
                  <span className="hidden-visually">Line </span>
                  {number}
                </a>
                <code data-comment={/^\s*#/.test(line) || undefined}>{line || "\n"}</code>
              </li>
            );
          })}
        </ol>
      </Scroll>
    </details>
  );
}
