import { useRouterState } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import { count } from "@/lib/numbers";
import { clean } from "@/lib/words";
import { CopyButton } from "@/parts/CopyButton";
import { Scroll } from "@/parts/Scroll";
import classes from "./SourceFile.module.css";

/** Show a file with a link for each line, such as `#xfs-fsync.sh-L12`. */
export function SourceFile({ name, text, open }: { name: string; text: string; open: boolean }) {
  const hash = useRouterState({ select: state => state.location.hash });
  const linked = useRef<HTMLLIElement>(null);
  const lines = clean(text).replace(/\n$/, "").split("\n");
  const at = hash.startsWith(`${name}-L`) ? Number(hash.slice(name.length + 2)) : 0;
  useEffect(() => {
    if (at > 0) linked.current?.scrollIntoView({ block: "center" });
  }, [at]);

  return (
    <details className={classes.file} open={open || at > 0}>
      <summary className={classes.head}>
        <span className={classes.name}>{name}</span>
        <span className="muted">{count(lines.length, "line")}</span>
      </summary>
      <div className={classes.copy}>
        <CopyButton text={text} name={`Copy ${name}`} />
      </div>
      <Scroll name={name} className={classes.text}>
        <ol className={classes.lines}>
          {lines.map((line, index) => {
            const number = index + 1;
            return (
              <li
                // biome-ignore lint/suspicious/noArrayIndexKey: lines are identified by their number
                key={index}
                ref={number === at ? linked : undefined}
                className={classes.line}
                data-marked={number === at || undefined}
              >
                <a
                  className={classes.number}
                  href={`#${name}-L${number}`}
                  aria-current={number === at ? "location" : undefined}
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
