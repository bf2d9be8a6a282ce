import { Fragment, type ReactNode } from "react";

/** Name and value pairs; those whose value is null, false or empty are left out. */
export function Facts({ of }: { of: Readonly<Record<string, ReactNode>> }) {
  return (
    <dl className="facts">
      {Object.entries(of)
        .filter(([, value]) => value != null && value !== false && value !== "")
        .map(([name, value]) => (
          <Fragment key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </Fragment>
        ))}
    </dl>
  );
}
