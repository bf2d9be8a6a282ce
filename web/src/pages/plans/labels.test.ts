import { expect, test } from "vitest";
import { documentationOf } from "./labels";

test("only a link to a page of the documentation is followed", () => {
  expect(documentationOf("[What it runs](../../docs/plans/rt-app.md).")).toBe("/docs/plans/rt-app/");
  expect(documentationOf("[b](../x.md) [c](javascript:alert) [d](https://kernel.org/docs/a.md)")).toBeNull();
  expect(documentationOf("# A plan of our own")).toBeNull();
});
