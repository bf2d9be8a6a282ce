import { expect, test } from "vitest";
import { safeNext } from "./next";

test.each([
  ["/submissions?state=running#3", "/submissions?state=running#3"],
  ["", "/"],
  ["https://evil.example/", "/"],
  ["//evil.example/", "/"],
  ["/\\evil.example/", "/"],
  ["/\t/evil.example/", "/"],
  ["javascript:alert(1)", "/"],
])("sign-in with next=%s leads to %s", (next, to) => {
  expect(safeNext(next)).toBe(to);
});
