import { fireEvent, screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { renderPart } from "@/testing/render";
import { BlockStrip } from "./BlockStrip";
import { blockOf, bootOf, runOf } from "./testing";

const run = runOf(21, {
  state: "running",
  outcome: null,
  blocks: [
    blockOf(0, { attempt: 1, discarded: 1 }),
    blockOf(1, { arms: ["candidate", "baseline"], state: "running" }),
    blockOf(2, { state: "pending", attempt: null }),
  ],
  boots: [
    bootOf(1, 0, "baseline", { outcome: "failed", valid: false }),
    bootOf(2, 0, "baseline", { attempt: 1 }),
    bootOf(3, 0, "candidate", { attempt: 1 }),
    bootOf(4, 1, "candidate", { position: 0, state: "measuring", outcome: null }),
  ],
});

test("boots are labeled with block, arm and state; pending boots are not links", async () => {
  await renderPart(<BlockStrip run={run} boot={3} />);
  expect(screen.getAllByRole("link").map(link => link.getAttribute("aria-label"))).toEqual([
    "Block 1, baseline: passed; 1 discarded",
    "Block 1, candidate: passed; 1 discarded",
    "Block 2, candidate: measuring",
  ]);
  expect(screen.getAllByText(/pending$/)).toHaveLength(3);
  expect(screen.getByRole("link", { current: true }).getAttribute("href")).toContain("run=21&boot=3");
});

test("the strip has one tab stop; arrow keys move between boots", async () => {
  await renderPart(<BlockStrip run={run} boot={2} />);
  const stops = () => screen.getAllByRole("link").filter(link => link.tabIndex === 0);
  expect(stops()).toHaveLength(1);
  const first = stops()[0] as HTMLElement;
  expect(first.getAttribute("href")).toContain("boot=2");
  first.focus();
  fireEvent.keyDown(first, { key: "ArrowRight" });
  expect(document.activeElement?.getAttribute("href")).toContain("boot=3");
  fireEvent.keyDown(document.activeElement as Element, { key: "End" });
  expect(document.activeElement?.getAttribute("href")).toContain("boot=4");
});

test("a hundred blocks have one tab stop", async () => {
  const blocks = Array.from({ length: 100 }, (_, block) => blockOf(block));
  const boots = blocks.flatMap(({ block }) => [
    bootOf(2 * block + 1, block, "baseline"),
    bootOf(2 * block + 2, block, "candidate"),
  ]);
  await renderPart(<BlockStrip run={runOf(21, { blocks, boots })} boot={null} />);
  const links = screen.getAllByRole("link");
  expect(links).toHaveLength(200);
  expect(links.filter(link => link.tabIndex === 0).map(link => link.getAttribute("aria-label"))).toEqual([
    "Block 100, candidate: passed",
  ]);
});
