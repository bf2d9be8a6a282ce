/**
 * Number formatting. The rules are those of the text reports (comparison/wqlab_comparison/words.py), so that a number
 * reads the same on a page, in a mail and on a terminal; contracts/tests/golden/numbers.json has the expected texts for
 * both. Results are computed by the server, never here.
 */

/** Minus sign U+2212, for pages; text reports and copied text use the ASCII hyphen. */
export const MINUS = "\u2212";

/** Return the decimal places for a column: about four significant digits for the largest of `values`. */
export function places(values: readonly number[]): number {
  const finite = values.filter(Number.isFinite).map(Math.abs);
  const largest = Math.max(0, ...finite);
  if (largest === 0 || finite.every(value => Number.isInteger(value) && value < 1e15)) return 0;
  if (largest < 1) return Math.min(12, Math.max(0, 3 - Math.floor(Math.log10(largest))));
  return largest < 10_000 ? 2 : 0;
}

/** Return the decimal places for a column of means and standard deviations; 0 if all deviations are at least 10. */
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
 * Format with fixed decimals, rounding half to even as Python's `format` does (1/32 to four places is .0312); toFixed
 * rounds half up. A hundred places are enough to represent exactly every double that is such a tie.
 */
export function fixed(value: number, decimals: number): string {
  const rounded = value.toFixed(decimals);
  const tie = /^50*$/.test(value.toFixed(100).slice(decimals - 100));
  if (!tie || "02468".includes(rounded.at(-1) as string)) return rounded;
  const [whole, fraction = ""] = Math.abs(value).toFixed(100).split(".") as [string, string];
  const truncated = decimals === 0 ? whole : `${whole}.${fraction.slice(0, decimals)}`;
  return value < 0 ? `-${truncated}` : truncated;
}

/** Format a number; in exponent form from 1e12. */
export function number(value: number, decimals = places([value])): string {
  if (Math.abs(value) >= 1e12) return minus(exponential(value, 3));
  return minus(fixed(value, decimals));
}

/** Return a metric's name without the unit of a time, which is beside each figure: `wait_p99` of `wait_p99_us`. */
export function metricName(metric: string): string {
  return metric.replace(/(?<!_per)_(?:ns|us|ms|s)$/, "");
}

/** Format a time in microseconds with three significant digits, in a unit that fits: `17.1 s`. */
export function microseconds(value: number): string {
  const [size, unit] = value >= 1e6 ? [1e6, "s"] : value >= 1e3 ? [1e3, "ms"] : [1, "us"];
  return `${Number((value / (size as number)).toPrecision(3))} ${unit}`;
}

/** Format a mean with its standard deviation, if there is one: `1159.40 ±1.34`. */
export function spread(arm: Arm, decimals = placesOfArms([arm])): string {
  const mean = number(arm.mean, decimals);
  return arm.stddev == null ? mean : `${mean} ±${number(arm.stddev, decimals)}`;
}

/** Format a published change with its sign and all of its digits. */
export function asPublished(change: number): string {
  return minus(`${change > 0 ? "+" : ""}${change}`);
}

/** Format a signed number with three significant digits. */
export function signed(value: number): string {
  const size = Math.abs(value);
  if (size === 0) return "0.00";
  const sign = value < 0 ? MINUS : "+";
  if (size >= 1e6 || size < 0.001) return sign + exponential(size, 2);
  const decimals = size < 0.01 ? 4 : size < 0.1 ? 3 : size < 10 ? 2 : size < 100 ? 1 : 0;
  return sign + fixed(size, decimals);
}

/** Return the unit of effects on a metric; comparisons have the server's `effect_unit`. */
export function effectUnitOf(metric: { scale: "ratio" | "difference"; unit: string }): string {
  if (metric.scale === "ratio") return "%";
  return isPercent(metric.unit) ? "points" : metric.unit;
}

/** Return true if a metric is in percent; plans may write the unit in two ways. */
export function isPercent(unit: string): boolean {
  return unit === "%" || unit === "percent";
}

/** Format a value with its unit, in the singular for 1: `1 lock`, `0.5 points`, `5 %`. */
export function withUnit(value: number, unit: string): string {
  const counted = /^[a-z]{3,}s$/.test(unit);
  return `${value} ${value === 1 && counted ? unit.replace(/(?<=[cs]h)es$|s$/, "") : unit}`;
}

interface Effect {
  effect?: number | null;
  exact?: boolean;
  scale: "ratio" | "difference";
  effect_unit: string;
}

/** Format an effect without its unit: an integer between exact counts, otherwise three significant digits. */
export function change(of: Effect): string {
  if (of.effect == null) return "";
  const counts = of.exact && of.scale === "difference" && of.effect_unit !== "points";
  if (!counts || Math.abs(of.effect) >= 1e12) return signed(of.effect);
  return of.effect === 0 ? "0" : (of.effect < 0 ? MINUS : "+") + fixed(Math.abs(of.effect), 0);
}

/** Format an effect with its unit: `+1.24 %`; empty if there is none. */
export function effect(of: Effect): string {
  return of.effect == null ? "" : `${change(of)} ${of.effect_unit}`.trimEnd();
}

/** Format a confidence interval: `[+0.81, +1.52]`; empty if there is none. */
export function interval(ci95: readonly [number, number] | readonly number[] | null | undefined): string {
  if (ci95 == null || ci95.length !== 2) return "";
  return `[${signed(ci95[0] as number)}, ${signed(ci95[1] as number)}]`;
}

/** Return true if n of such figures counts seeds: counts of instrumented devices, and modelled figures. */
export function countsSeeds(evidence: string | undefined): boolean {
  return evidence === "instrumented" || evidence === "modelled";
}

interface Judged {
  exact?: boolean | undefined;
  evidence?: string;
  effect?: number | null;
  ci95?: readonly number[] | null;
}

/** Format the interval of a comparison, or `exact` for a result without one: two counts, or equal counts under each seed. */
export function intervalOf(of: Judged | undefined): string {
  const same = countsSeeds(of?.evidence) && of?.effect === 0;
  return interval(of?.ci95) || (of?.exact || same ? "exact" : "");
}

/** Format a p-value: `.0031`; `<.0001` for smaller ones. */
export function pValue(p: number): string {
  if (p < 0.0001) return "<.0001";
  return p < 1 ? fixed(p, 4).replace(/^0/, "") : "1";
}

/** Format a count with its noun: `1 block`, `3 blocks`. */
export function count(value: number, noun: string, plural = `${noun}s`): string {
  return `${grouped(value)} ${value === 1 ? noun : plural}`;
}

/** Format an integer; from five digits on in groups of three, separated by a narrow no-break space. */
export function grouped(integer: number): string {
  const digits = minus(Math.trunc(integer).toString());
  return Math.abs(integer) < 10_000 ? digits : digits.replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

/** Format a size in bytes with binary prefixes: `812 B`, `1.4 MiB`. */
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

/** Format in exponent form with at least two exponent digits, as Python does. */
function exponential(value: number, decimals: number): string {
  return value.toExponential(decimals).replace(/e([+-])(\d)$/, "e$10$2");
}

/** Replace a leading hyphen with the minus sign; zero has no sign. */
function minus(text: string): string {
  const zero = /^-0(\.0*)?$/.test(text);
  return text.startsWith("-") ? (zero ? "" : MINUS) + text.slice(1) : text;
}
