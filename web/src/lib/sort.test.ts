import { expect, test } from "vitest";
import { formatSort, parseSort } from "./sort";

test("a sort order survives a round trip through the URL", () => {
  for (const order of [null, { id: "effect", desc: true }, { id: "metric", desc: false }]) {
    expect(parseSort(formatSort(order))).toEqual(order);
  }
  expect(parseSort("-")).toBeNull();
});
