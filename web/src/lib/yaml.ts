/** Write YAML that every version of the language reads alike: text that could be anything else is quoted. */

type Scalar = string | number | boolean;
type Value = Scalar | readonly (Scalar | Flat)[] | Flat;
interface Flat {
  readonly [name: string]: Scalar;
}

/** Columns up to which a list is written in one line. */
const LINE = 100;
/** Words that YAML 1.1 or 1.2 reads as a boolean or as nothing. */
const RESERVED = /^(y|n|yes|no|on|off|true|false|null)$/i;

/** Return a mapping as YAML, with a newline at its end. Lists that are too long for a line have one entry a line. */
export function toYaml(fields: Readonly<Record<string, Value>>): string {
  return Object.entries(fields)
    .map(([name, value]) => field(name, value))
    .join("");
}

function field(name: string, value: Value): string {
  const line = `${scalar(name)}: ${flow(value)}\n`;
  if (!Array.isArray(value) || line.length <= LINE) return line;
  return `${scalar(name)}:\n${value.map(each => `  - ${flow(each)}\n`).join("")}`;
}

function flow(value: Value): string {
  if (Array.isArray(value)) return `[${value.map(flow).join(", ")}]`;
  if (typeof value !== "object") return scalar(value);
  const pairs = Object.entries(value).map(([name, each]) => `${scalar(name)}: ${flow(each)}`);
  return `{${pairs.join(", ")}}`;
}

function scalar(value: Scalar): string {
  if (typeof value !== "string") return String(value);
  const plain = /^[A-Za-z][\w.@/+-]*( [\w.@/+-]+)*$/.test(value) && !RESERVED.test(value);
  return plain ? value : quoted(value);
}

/** JSON's strings are YAML's, but for characters that a YAML file must not contain. */
function quoted(text: string): string {
  return JSON.stringify(text).replace(
    /[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]/g,
    char => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
