import { screen } from "@testing-library/react";
import { expect, test } from "vitest";
import type { Quote, SubmissionRequest, TargetQuote } from "@/api/types";
import { renderPart } from "@/testing/render";
import { QuoteSums, QuoteTargets } from "./QuotePanel";
import type { LiveQuote } from "./useQuote";

const target: TargetQuote = {
  index: 0,
  plan: "fsync",
  device_type: "xeon",
  emulated: true,
  blocks: 2,
  boots: 4,
  settings: 1,
  boot_s: 60,
  device_s: 240,
  basis: "measured",
  measured_boots: 12,
  basis_text: "mean of 12 boots of fsync on xeon",
  detectable: null,
  queue_position: 1,
  ahead_runs: 0,
  ahead_boots: 0,
  units: { good: 2, busy: 0, unchecked: 0, quarantined: 0 },
  starts_at: "2126-01-01T00:00:02Z",
  ends_at: "2126-01-01T00:04:00Z",
  notes: [],
};
const quote: Quote = {
  at: "2126-01-01T00:00:00Z",
  errors: [],
  builds: [{ recipe: "measure", kernels: 2, reused: 0, build_s: null, basis: "unknown", measured_builds: 0 }],
  build_s: null,
  targets: [target],
  device_s: 240,
  starts_at: "2126-01-01T00:00:02Z",
  ends_at: "2126-01-01T00:04:00Z",
  basis: "unknown",
};
const request: SubmissionRequest = {
  series: null,
  tree: "linux",
  targets: [{ plan: "fsync", device_type: "xeon" }],
  priority: 50,
};
const live = (change: Partial<LiveQuote> = {}): LiveQuote => ({
  quote,
  current: true,
  visitor: false,
  error: null,
  mistakes: [],
  key: "",
  ...change,
});
const both = (of: LiveQuote) => (
  <>
    <QuoteSums live={of} request={request} />
    <QuoteTargets live={of} request={request} />
  </>
);
const text = (container: Element) => container.textContent?.replaceAll(/\s+/g, " ");

test("what was measured is said plainly, what nobody can know as not known", async () => {
  const { container } = await renderPart(both(live()));
  expect(text(container)).toContain("Device time4 min");
  expect(text(container)).toContain("2 kernelsnot known");
  expect(text(container)).toContain("1st, 2 devices free");
  expect(text(container)).toContain("From, toat once");
  expect(screen.getByText("Basis: measured, 12 boots")).toBeTruthy();
});

test("times that were never taken are bounds", async () => {
  const planned = { ...target, basis: "planned" as const };
  const { container } = await renderPart(both(live({ quote: { ...quote, targets: [planned] } })));
  expect(text(container)).toContain("Device time≤ 4 min");
  expect(text(container)).toContain("Report by");
});

test("a note about every target is said once", async () => {
  const [a, b] = [
    { ...target, notes: ["every device waits"] },
    { ...target, plan: "crypt", notes: ["every device waits", "crypt is ahead"] },
  ];
  await renderPart(both(live({ quote: { ...quote, targets: [a, b] } })));
  expect(screen.getAllByText("every device waits")).toHaveLength(1);
  expect(screen.getAllByText("crypt is ahead")).toHaveLength(1);
});

test("the smallest difference has the unit of its effect, and what is worth attention", async () => {
  const detectable = {
    metric: "local_share",
    unit: "%",
    scale: "difference",
    direction: "higher_is_better",
    evidence: "mechanism",
    delta: 0.5,
    effect: 1.234,
    blocks_measured: 6,
    exact: false,
    why: "at the spread of 6 past blocks",
  } as const;
  const { container } = await renderPart(
    both(live({ quote: { ...quote, targets: [{ ...target, detectable }] } })),
  );
  expect(text(container)).toContain("1.23 points of local_share (worth attention from 0.5 points)");
});

test("who is not signed in is told so, and a refused form what to do", async () => {
  const visitor = await renderPart(both(live({ quote: undefined, visitor: true })));
  expect(text(visitor.container)).toContain("Once you are signed in");
  visitor.unmount();
  const refused = live({
    quote: undefined,
    error: new Error("2 mistakes"),
    mistakes: [{ pointer: "/blocks", detail: "no" }],
  });
  const { container } = await renderPart(both(refused));
  expect(text(container)).toContain("until what is marked in the form is mended");
});
