import { expect, test } from "vitest";
import type { CpuLayout } from "@/api/types";
import { compareWithDescription } from "./compareLayouts";

const FOUR: CpuLayout = {
  basis: "described",
  cpus: 4,
  numbers: null,
  package: [0, 0, 0, 0],
  node: [0, 0, 0, 0],
  l3: [0, 0, 1, 1],
  last_level: "L3",
  core: [0, 1, 2, 3],
  thread: [0, 0, 0, 0],
  cluster: null,
  capacity: null,
};

test("a measured layout is compared with the described layout", () => {
  expect(compareWithDescription(FOUR, { ...FOUR, basis: "measured", cluster: [0, 0, 1, 1] })).toBe(
    "same as described",
  );
  expect(compareWithDescription(FOUR, { ...FOUR, basis: "measured", l3: [0, 0, 0, 0] })).toBe(
    "differs: L3 domains",
  );
  expect(compareWithDescription(FOUR, { ...FOUR, basis: "measured", cpus: 2 })).toBe(
    "differs: 2 CPUs instead of 4",
  );
});

test("a device that never booted has no measured layout", () => {
  expect(compareWithDescription(FOUR, null)).toBe("not measured yet");
  expect(compareWithDescription(FOUR, FOUR)).toBe("not measured yet");
});
