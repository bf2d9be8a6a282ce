import { expect, test } from "vitest";
import { readSort, sortText } from "./sort";

test("an order survives its way through an address", () => {
  for (const order of [null, { id: "effect", desc: true }, { id: "metric", desc: false }]) {
    expect(readSort(sortText(order))).toEqual(order);
  }
  expect(readSort("-")).toBeNull();
});
