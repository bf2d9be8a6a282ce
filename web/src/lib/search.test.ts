import { expect, expectTypeOf, test } from "vitest";
import {
  day,
  flag,
  oneOf,
  parseSearch,
  searchParams,
  someOf,
  stringifySearch,
  text,
  texts,
  whole,
} from "./search";

const search = searchParams({
  q: text(10),
  state: oneOf(["running", "finished"]),
  verdict: someOf(["regression", "failed", "improvement"]),
  boot: whole(),
  size: whole({ min: 1, max: 200, fallback: 50 }),
  since: day(),
  label: texts(),
  diff: flag(),
});

const { read } = search;

test("an empty query reads as the defaults", () => {
  expect(read({})).toEqual(search.defaults);
  expect(stringifySearch({ q: "", verdict: [], boot: null, diff: false })).toBe("");
});

test("invalid values read as defaults, valid values are kept", () => {
  const invalid =
    "?q=abcdefghijklmno&state=exploded&verdict=failed&verdict=regression&verdict=x&boot=1e99&size=0&since=2026-13-40";
  expect(read(parseSearch(invalid))).toEqual({
    ...search.defaults,
    q: "abcdefghij",
    verdict: ["regression", "failed"],
  });
});

test("values survive a round trip through the URL", () => {
  const values = {
    q: "wq: a/b",
    verdict: ["regression", "failed"],
    boot: 7,
    size: 20,
    label: ["a", "b"],
    diff: true,
  };
  const query = stringifySearch(values);
  expect(query).toBe("?q=wq:+a/b&verdict=regression&verdict=failed&boot=7&size=20&label=a&label=b&diff=1");
  expect(read(parseSearch(query))).toEqual({ ...search.defaults, ...values });
  expect(read(values)).toEqual({ ...search.defaults, ...values });
});

test("defaults are never written into the URL", () => {
  const [strip] = search.search.middlewares;
  const all = { ...search.defaults, q: "x", verdict: ["failed"], other: 1 };
  expect(strip?.({ search: all, next: same => same })).toEqual({ q: "x", verdict: ["failed"], other: 1 });
});

test("the values have the types of their parameters", () => {
  expectTypeOf(search.defaults.state).toEqualTypeOf<"running" | "finished" | "">();
  expectTypeOf(search.defaults.boot).toEqualTypeOf<number | null>();
  expectTypeOf(search.defaults.verdict).toEqualTypeOf<("regression" | "failed" | "improvement")[]>();
});
