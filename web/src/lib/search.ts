/**
 * Search parameters with types: what a page shows is in its address, and an address that somebody mangled still opens.
 *
 * A page declares its parameters once; what is missing or makes no sense reads as the parameter's default, and a default
 * is never written into the address. Lists are repeated parameters: `?verdict=regression&verdict=failed`.
 */

import type { SearchSchemaInput } from "@tanstack/react-router";

export interface Param<T> {
  readonly fallback: T;
  /** The value for what the address (a string, a list of strings) or a link (a T) holds. */
  read(raw: unknown): T;
}

/** Any text, trimmed and cut; absent is "". */
export function text(longest = 200): Param<string> {
  return {
    fallback: "",
    read: raw =>
      String(first(raw) ?? "")
        .trim()
        .slice(0, longest),
  };
}

/** One of a closed list. */
export function oneOf<const T extends string>(known: readonly T[], fallback: NoInfer<T>): Param<T>;
export function oneOf<const T extends string>(known: readonly T[]): Param<T | "">;
export function oneOf(known: readonly string[], fallback = ""): Param<string> {
  return { fallback, read: raw => known.find(each => each === first(raw)) ?? fallback };
}

/** Several of a closed list, each once, in the list's own order. */
export function someOf<const T extends string>(known: readonly T[]): Param<T[]> {
  return { fallback: [], read: raw => known.filter(each => list(raw).includes(each)) };
}

/** Several texts, each once. */
export function texts(longest = 200): Param<string[]> {
  return {
    fallback: [],
    read: raw => [...new Set(list(raw).map(each => each.trim().slice(0, longest)))].filter(Boolean),
  };
}

/** A whole number between bounds; `null` when absent and there is no fallback. */
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

/** A switch: `?only=1`. */
export function flag(): Param<boolean> {
  return { fallback: false, read: raw => first(raw) === true || first(raw) === "1" };
}

/** A day, `2026-11-21`; anything else reads as none. */
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
 * What a route takes: `{ ...searchParams({...}) }` in its options. `defaults` is what an
 * address that says nothing means; `read` makes sense of anything else that holds the parameters, such as a stored draft.
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

/** A router middleware: what says no more than the default stays out of addresses. */
function withoutDefaults(defaults: Record<string, unknown>) {
  return <T extends object>({ search, next }: { search: T; next: (search: T) => T }): T => {
    const chosen = Object.entries(next(search)).filter(
      ([name, value]) => !(name in defaults) || JSON.stringify(value) !== JSON.stringify(defaults[name]),
    );
    return Object.fromEntries(chosen) as T;
  };
}

/** The router's two halves: everything is text, a list is a repeated name, and what is empty is left out. */
export function parseSearch(query: string): Record<string, string | string[]> {
  const found: Record<string, string | string[]> = {};
  for (const [name, value] of new URLSearchParams(query)) {
    const before = found[name];
    found[name] = before === undefined ? value : [...(Array.isArray(before) ? before : [before]), value];
  }
  return found;
}

export function stringifySearch(search: Record<string, unknown>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(search)) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each === undefined || each === null || each === "" || each === false) continue;
      query.append(name, each === true ? "1" : String(each));
    }
  }
  // Addresses are read and mailed by people: what needs no escape in a query gets none.
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
