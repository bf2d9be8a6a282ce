/**
 * Typed search parameters. A page's state is in its URL, and a URL with invalid values still opens.
 *
 * A page declares its parameters once. Missing and invalid values read as the parameter's default, and defaults are
 * never written into the URL. Lists are repeated parameters: `?verdict=regression&verdict=failed`.
 */

import type { SearchSchemaInput } from "@tanstack/react-router";

export interface Param<T> {
  readonly fallback: T;
  /** Parse the value of the URL (a string or a list of strings) or of a link (a T). */
  read(raw: unknown): T;
}

/** Text, trimmed and truncated to `maxLength`; "" if absent. */
export function text(maxLength = 200): Param<string> {
  return {
    fallback: "",
    read: raw =>
      String(first(raw) ?? "")
        .trim()
        .slice(0, maxLength),
  };
}

/** One of the `known` values. */
export function oneOf<const T extends string>(known: readonly T[], fallback: NoInfer<T>): Param<T>;
export function oneOf<const T extends string>(known: readonly T[]): Param<T | "">;
export function oneOf(known: readonly string[], fallback = ""): Param<string> {
  return { fallback, read: raw => known.find(each => each === first(raw)) ?? fallback };
}

/** A subset of the `known` values, in their order. */
export function someOf<const T extends string>(known: readonly T[]): Param<T[]> {
  return { fallback: [], read: raw => known.filter(each => list(raw).includes(each)) };
}

/** A list of texts without duplicates. */
export function texts(maxLength = 200): Param<string[]> {
  return {
    fallback: [],
    read: raw => [...new Set(list(raw).map(each => each.trim().slice(0, maxLength)))].filter(Boolean),
  };
}

/** An integer between bounds; the fallback (default null) if absent or invalid. */
export function whole(bounds: { min?: number; max?: number; fallback: number }): Param<number>;
export function whole(bounds?: { min?: number; max?: number }): Param<number | null>;
export function whole(bounds: { min?: number; max?: number; fallback?: number } = {}): Param<number | null> {
  const { min = 0, max = 2 ** 31 - 1, fallback = null } = bounds;
  return {
    fallback,
    read: raw => {
      const given = first(raw);
      const value = given == null || given === "" ? Number.NaN : Number(given);
      return Number.isInteger(value) && value >= min && value <= max ? value : fallback;
    },
  };
}

/** A boolean flag: `?only=1`. */
export function flag(): Param<boolean> {
  return { fallback: false, read: raw => first(raw) === true || first(raw) === "1" };
}

/** A date (`2026-11-21`); "" if absent or invalid. */
export function day(): Param<string> {
  return {
    fallback: "",
    read: raw => {
      const given = String(first(raw) ?? "");
      return /^\d{4}-\d\d-\d\d$/.test(given) && !Number.isNaN(Date.parse(given)) ? given : "";
    },
  };
}

type Shape = Record<string, Param<unknown>>;
export type Values<S extends Shape> = { [K in keyof S]: S[K] extends Param<infer T> ? T : never };

/**
 * Route options for search parameters: spread the result into the route's options. `defaults` are the values of an
 * empty query; `read` parses the parameters from another source, such as a stored draft.
 */
export function searchParams<S extends Shape>(shape: S) {
  const names = Object.keys(shape) as (keyof S & string)[];
  const values = (of: (param: Param<unknown>, name: string) => unknown) =>
    Object.fromEntries(names.map(name => [name, of(shape[name] as Param<unknown>, name)])) as Values<S>;
  const defaults = values(param => param.fallback);
  const validateSearch = (raw: Partial<Values<S>> & SearchSchemaInput): Values<S> =>
    values((param, name) => param.read((raw as Record<string, unknown>)[name]));
  const read = (raw: Record<string, unknown>) => validateSearch(raw as Parameters<typeof validateSearch>[0]);
  return { validateSearch, read, defaults, search: { middlewares: [withoutDefaults(defaults)] } };
}

/** Router middleware that leaves default values out of URLs. */
function withoutDefaults(defaults: Record<string, unknown>) {
  return <T extends object>({ search, next }: { search: T; next: (search: T) => T }): T => {
    const chosen = Object.entries(next(search)).filter(
      ([name, value]) => !(name in defaults) || JSON.stringify(value) !== JSON.stringify(defaults[name]),
    );
    return Object.fromEntries(chosen) as T;
  };
}

/** Parse a query string: all values are strings, a repeated name is a list. */
export function parseSearch(query: string): Record<string, string | string[]> {
  const found: Record<string, string | string[]> = {};
  for (const [name, value] of new URLSearchParams(query)) {
    const before = found[name];
    found[name] = before === undefined ? value : [...(Array.isArray(before) ? before : [before]), value];
  }
  return found;
}

/** Format search parameters as a query string, leaving out empty values. */
export function stringifySearch(search: Record<string, unknown>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(search)) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each === undefined || each === null || each === "" || each === false) continue;
      query.append(name, each === true ? "1" : String(each));
    }
  }
  // Keep URLs readable: do not escape characters that are valid in a query.
  const text = query
    .toString()
    .replaceAll("%2C", ",")
    .replaceAll("%3A", ":")
    .replaceAll("%2F", "/")
    .replaceAll("%3D", "=")
    .replaceAll("%40", "@");
  return text ? `?${text}` : "";
}

function first(raw: unknown): unknown {
  return Array.isArray(raw) ? raw[0] : raw;
}

function list(raw: unknown): string[] {
  return (Array.isArray(raw) ? raw : raw == null || raw === "" ? [] : [raw]).map(String);
}
