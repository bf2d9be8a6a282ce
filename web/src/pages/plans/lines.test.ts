import { expect, test } from "vitest";
import { hashOf, linesOf } from "./lines";

test.each([
  ["xfs-fsync.sh-L12", { file: "xfs-fsync.sh", from: 12, to: 12 }],
  ["#lib/device-L2.sh-L3-L9", { file: "lib/device-L2.sh", from: 3, to: 9 }],
  ["x.sh-L9-L3", { file: "x.sh", from: 3, to: 9 }],
  ["metrics", null],
  ["x.sh-L0", null],
  ["%E0%A4%A-L1", { file: "%E0%A4%A", from: 1, to: 1 }],
])("#%s", (hash, lines) => {
  expect(linesOf(hash)).toEqual(lines);
});

test("a hash parses to the lines it was made from", () => {
  const lines = { file: "dm-crypt-affinity.sh", from: 3, to: 9 };
  expect(linesOf(hashOf(lines))).toEqual(lines);
});
