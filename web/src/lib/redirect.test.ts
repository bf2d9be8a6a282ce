import { expect, test } from "vitest";
import { safeRedirectPath } from "./redirect";

test.each([
  ["/submissions?state=running#3", "/submissions?state=running#3"],
  ["", "/"],
  ["https://evil.example/", "/"],
  ["//evil.example/", "/"],
  ["/\\evil.example/", "/"],
  ["/\t/evil.example/", "/"],
  ["javascript:alert(1)", "/"],
])("sign-in with next=%s redirects to %s", (next, to) => {
  expect(safeRedirectPath(next)).toBe(to);
});
