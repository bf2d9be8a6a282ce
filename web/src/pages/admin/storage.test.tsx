import { screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { renderPart } from "@/testing/render";
import { Areas } from "./Storage";

test("storage shows use, limit, problem and pinned submissions", async () => {
  const area = {
    name: "artifacts",
    summary: "kernels",
    place: "/var/lib",
    bytes: 830 * 2 ** 20,
    entries: 14,
    pinned_bytes: 2 ** 20,
    limit_bytes: 50 * 2 ** 30,
    keep_s: 90 * 86_400,
    free_bytes: 2 ** 30,
    reserve_bytes: 2 ** 31,
    next_deletion_at: null,
    problem: "pinned files exceed the limit",
  };
  const machine = { machine: "server", reported_at: "2026-11-25T14:00:00Z", areas: [area] };
  await renderPart(<Areas storage={{ machines: [machine], pinned: [7] }} />);
  for (const text of ["830 MiB", "50 GiB, 90 days", "pinned files exceed the limit", "1.0 GiB"]) {
    expect(screen.getByText(text)).toBeDefined();
  }
  expect(screen.getByRole("link", { name: "7" }).getAttribute("href")).toBe("/submissions/7");
});
