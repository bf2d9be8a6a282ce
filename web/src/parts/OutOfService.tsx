import { Link } from "@tanstack/react-router";
import type { DeviceView } from "@/api/types";
import { count } from "@/lib/numbers";
import { oneLine } from "@/lib/words";

/** Why devices cannot be used, each reason once with its devices. With `most`, a link leads to the other reasons. */
export function OutOfService({
  devices,
  most = Number.POSITIVE_INFINITY,
}: {
  devices: readonly DeviceView[];
  most?: number;
}) {
  const out = devices.filter(each => each.health === "quarantined" || each.away !== "");
  const reasons = Map.groupBy(out, each => oneLine(each.away || each.health_reason) || "no reason given");
  if (reasons.size === 0) return null;
  return (
    <div>
      <p>
        <strong>Out of service</strong>
      </p>
      <ul aria-label="Out of service">
        {[...reasons].slice(0, most).map(([reason, of]) => (
          <li key={reason}>
            {of.map((each, at) => (
              <span key={each.name}>
                {at > 0 && ", "}
                <Link to="/lab/$name" params={{ name: each.name }}>
                  {each.name}
                </Link>
              </span>
            ))}
            : <span className="muted">{reason}</span>
          </li>
        ))}
      </ul>
      {reasons.size > most && <Link to="/lab">{count(reasons.size - most, "more reason")}</Link>}
    </div>
  );
}
