import { expect, test } from "vitest";
import type { CpuLayout } from "@/api/types";
import { compared } from "./layouts";

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

test("a device is compared with what its type says", () => {
  expect(compared(FOUR, { ...FOUR, basis: "measured", cluster: [0, 0, 1, 1] })).toBe("same as described");
  expect(compared(FOUR, { ...FOUR, basis: "measured", l3: [0, 0, 0, 0] })).toBe("differs: L3 domains");
  expect(compared(FOUR, { ...FOUR, basis: "measured", cpus: 2 })).toBe("differs: 2 CPUs instead of 4");
});

test("a device that never booted is measured by nobody", () => {
  expect(compared(FOUR, null)).toBe("not measured yet");
  expect(compared(FOUR, FOUR)).toBe("not measured yet");
});
