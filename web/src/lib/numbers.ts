/**
 * Figures as text. The rules are those of the lab's text reports (comparison/wqlab_comparison/words.py), so that a
 * number reads the same on a page, in a mail and on a terminal. Nothing here computes a result: the server did.
 */

/** U+2212 where a person reads; reports and copies keep the ASCII hyphen. */
export const MINUS = "\u2212";

/** Decimal places that give the largest of `values` about four digits, the same for a whole column. */
export function places(values: readonly number[]): number {
  const finite = values.filter(Number.isFinite).map(Math.abs);
  const largest = Math.max(0, ...finite);
  if (largest === 0 || finite.every(value => Number.isInteger(value) && value < 1e15)) return 0;
  if (largest < 1) return Math.min(12, Math.max(0, 3 - Math.floor(Math.log10(largest))));
  return largest < 10_000 ? 2 : 0;
}

/** What a mean and its spread have in common: places for a column of them; none behind a mean that varies by tens. */
export function placesOfArms(arms: readonly (Arm | null | undefined)[]): number {
  const known = arms.filter(arm => arm != null);
  const deviations = known
    .map(arm => arm.stddev)
    .filter(stddev => stddev != null && stddev !== 0) as number[];
  if (deviations.length > 0 && Math.min(...deviations) >= 10) return 0;
  return places([...known.map(arm => arm.mean), ...deviations]);
}

interface Arm {
  mean: number;
  stddev?: number | null;
}

/**
 * As Python's `format` rounds: what lies exactly in the middle goes to the even digit (1/32 to four places is .0312),
 * where toFixed always goes up. A hundred places show every double that can be such a middle exactly.
 */
export function fixed(value: number, decimals: number): string {
  const rounded = value.toFixed(decimals);
  const middle = /^50*$/.test(value.toFixed(100).slice(decimals - 100));
  if (!middle || "02468".includes(rounded.at(-1) as string)) return rounded;
  const [whole, fraction = ""] = Math.abs(value).toFixed(100).split(".") as [string, string];
  const cut = decimals === 0 ? whole : `${whole}.${fraction.slice(0, decimals)}`;
  return value < 0 ? `-${cut}` : cut;
}

/** A plain number; huge ones in exponent form. */
export function number(value: number, decimals = places([value])): string {
  if (Math.abs(value) >= 1e12) return value.toExponential(3);
  return minus(fixed(value, decimals));
}

/** `1159.40 ±1.34`; without a deviation just the mean. */
export function spread(arm: Arm, decimals = placesOfArms([arm])): string {
  const mean = number(arm.mean, decimals);
  return arm.stddev == null ? mean : `${mean} ±${number(arm.stddev, decimals)}`;
}

/** A change with its sign and the digits that its authors gave it. */
export function asPublished(change: number): string {
  return minus(`${change > 0 ? "+" : ""}${change}`);
}

/** With a sign; three digits that matter. */
export function signed(value: number): string {
  const size = Math.abs(value);
  if (size === 0) return "0.00";
  const sign = value < 0 ? MINUS : "+";
  if (size >= 1e6 || size < 0.001) return sign + size.toExponential(2);
  const decimals = size < 0.01 ? 4 : size < 0.1 ? 3 : size < 10 ? 2 : size < 100 ? 1 : 0;
  return sign + fixed(size, decimals);
}

/** What the effect of a comparison is counted in. */
export function unitOfEffect(of: { scale: "ratio" | "difference"; unit: string }): string {
  if (of.scale === "ratio") return "%";
  return of.unit === "%" || of.unit === "percent" ? "points" : of.unit;
}

/** `1 lock`, `0.5 points`, `5 %`. */
export function withUnit(value: number, unit: string): string {
  const counted = /^[a-z]{3,}s$/.test(unit);
  return `${value} ${value === 1 && counted ? unit.replace(/(?<=[cs]h)es$|s$/, "") : unit}`;
}

interface Effect {
  effect?: number | null;
  exact?: boolean;
  scale: "ratio" | "difference";
  unit: string;
}

/** The effect without its unit: between two counts a whole number, otherwise three digits that matter. */
export function change(of: Effect): string {
  if (of.effect == null) return "";
  const counts = of.exact && of.scale === "difference" && unitOfEffect(of) !== "points";
  if (!counts || Math.abs(of.effect) >= 1e12) return signed(of.effect);
  return of.effect === 0 ? "0" : (of.effect < 0 ? MINUS : "+") + fixed(Math.abs(of.effect), 0);
}

/** `+1.24 %`; empty where there is none to show. */
export function effect(of: Effect): string {
  return of.effect == null ? "" : `${change(of)} ${unitOfEffect(of)}`.trimEnd();
}

/** `[+0.81, +1.52]`; empty where there is none to show. */
export function interval(ci95: readonly [number, number] | readonly number[] | null | undefined): string {
  if (ci95 == null || ci95.length !== 2) return "";
  return `[${signed(ci95[0] as number)}, ${signed(ci95[1] as number)}]`;
}

/** `.0031`; small ones as a bound. */
export function pValue(p: number): string {
  if (p < 0.0001) return "<.0001";
  return p < 1 ? fixed(p, 4).replace(/^0/, "") : "1";
}

/** `1 block`, `3 blocks`. */
export function count(many: number, noun: string, plural = `${noun}s`): string {
  return `${grouped(many)} ${many === 1 ? noun : plural}`;
}

/** Whole numbers of five digits and more in groups of three, with a narrow space that never breaks. */
export function grouped(whole: number): string {
  const digits = minus(Math.trunc(whole).toString());
  return Math.abs(whole) < 10_000 ? digits : digits.replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

/** `812 B`, `1.4 MiB`. */
export function bytes(size: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let value = size;
  let unit = 0;
  while (value >= 1023.5 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit > 0 && value < 10 ? value.toFixed(1) : value.toFixed(0)} ${units[unit]}`;
}

function minus(text: string): string {
  const zero = /^-0(\.0*)?$/.test(text);
  return text.startsWith("-") ? (zero ? "" : MINUS) + text.slice(1) : text;
}
