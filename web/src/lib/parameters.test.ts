import { expect, test } from "vitest";
import { numberOrText } from "./parameters";

test("parameters are parsed like command-line parameters", () => {
  expect(["5", "0.5", "-3", "32k", "1e3", "007", "a=b", ""].map(numberOrText)).toEqual([
    5,
    0.5,
    -3,
    "32k",
    "1e3",
    "007",
    "a=b",
    "",
  ]);
});
