import { oneLine } from "@/lib/words";
import { Section } from "@/parts/Page";

/** Where the blocks of the submission's budget went, and why; nothing without a budget. */
export function Budget({ lines = [] }: { lines?: readonly string[] }) {
  const [summary, ...why] = lines;
  if (summary === undefined) return null;
  return (
    <Section id="budget" title="Where the blocks went" lead={oneLine(summary)}>
      {why.length > 0 && (
        <ul>
          {why.map(line => (
            <li key={line}>{oneLine(line)}</li>
          ))}
        </ul>
      )}
    </Section>
  );
}
