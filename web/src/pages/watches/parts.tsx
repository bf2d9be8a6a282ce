/** Parts of all pages about watches. */
import { Link, type LinkProps } from "@tanstack/react-router";
import { Button } from "@/kit";
import { oneLine } from "@/lib/words";
import type { Standing } from "./watch";
import classes from "./watches.module.css";

/** Why something stands still, as a sign and a sentence. */
export function Obstacle({ of }: { of: Standing }) {
  return (
    <span className={classes.obstacle} data-tone={of.tone}>
      <span aria-hidden="true">{of.tone === "bad" ? "! " : "… "}</span>
      {of.text}
    </span>
  );
}

/** Names, each as code, wrapping between them; `none` if there are none. */
export function Names({ of, none }: { of: readonly string[] | undefined; none: string }) {
  if (!of?.length) return <span className="muted">{none}</span>;
  return (
    <ul className={classes.names}>
      {of.map(each => (
        <li key={each}>
          <code>{oneLine(each)}</code>
        </li>
      ))}
    </ul>
  );
}

/** A link to a form, beside buttons and with their looks. */
export function FormLink({ filled = false, children, ...link }: FormLinkProps) {
  return (
    <Button
      size="xs"
      variant={filled ? "filled" : "default"}
      renderRoot={props => <Link {...props} {...link} search={{ form: true } as never} />}
    >
      {children}
    </Button>
  );
}

interface FormLinkProps extends Pick<LinkProps, "to" | "params"> {
  filled?: boolean;
  children: string;
}
