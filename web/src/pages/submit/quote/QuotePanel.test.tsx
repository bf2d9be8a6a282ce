import { screen } from "@testing-library/react";
import { expect, test } from "vitest";
import type { Quote, SubmissionRequest, TargetQuote } from "@/api/types";
import { renderPart } from "@/testing/render";
import { QuoteSummary, QuoteTargets } from "./QuotePanel";
import type { LiveQuote } from "./useQuote";

const target: TargetQuote = {
  index: 0,
  plan: "fsync",
  device_type: "xeon",
  emulated: true,
  blocks: 2,
  looks: [],
  expected_blocks: null,
  boots: 4,
  settings: 1,
  boot_s: 60,
  device_s: 240,
  expected_device_s: null,
  basis: "measured",
  measured_boots: 12,
  basis_text: "mean of 12 boots of fsync on xeon",
  detectable: null,
  canaries: [],
  queue_position: 1,
  ahead_runs: 0,
  ahead_boots: 0,
  device_counts: { good: 2, busy: 0, suspect: 0, unknown: 0, quarantined: 0 },
  starts_at: "2126-01-01T00:00:02Z",
  ends_at: "2126-01-01T00:04:00Z",
  notes: [],
};
const quote: Quote = {
  at: "2126-01-01T00:00:00Z",
  errors: [],
  builds: [
    {
      recipe: "measure",
      kernels: 2,
      links: 0,
      reused: 0,
      build_s: null,
      basis: "unknown",
      measured_builds: 0,
    },
  ],
  build_s: null,
  targets: [target],
  device_s: 240,
  expected_device_s: null,
  starts_at: "2126-01-01T00:00:02Z",
  ends_at: "2126-01-01T00:04:00Z",
  basis: "unknown",
  quotas: [],
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
  signedOut: false,
  error: null,
  errors: [],
  key: "",
  ...change,
});
const both = (of: LiveQuote) => (
  <>
    <QuoteSummary live={of} request={request} />
    <QuoteTargets live={of} request={request} />
  </>
);
const text = (container: Element) => container.textContent?.replaceAll(/\s+/g, " ");

test("measured values are shown as such, missing ones as unknown", async () => {
  const { container } = await renderPart(both(live()));
  expect(text(container)).toContain("Device time4 min");
  expect(text(container)).toContain("2 kernelsunknown");
  expect(text(container)).toContain("1st, 2 devices free");
  expect(text(container)).toContain("Start, endnow");
  expect(screen.getByText("Basis: measured, 12 boots")).toBeTruthy();
});

test("planned times are shown as guesses", async () => {
  const planned = { ...target, basis: "planned" as const };
  const { container } = await renderPart(both(live({ quote: { ...quote, targets: [planned] } })));
  expect(text(container)).toContain("Device timeabout 4 min");
  expect(screen.getByText("Basis: a guess")).toBeTruthy();
});

test("quotas show what is left and when a used-up one is available again", async () => {
  const quotas: Quote["quotas"] = [
    { name: "submissions_waiting", limit: 20, used: 3, left: 17, available_at: null },
    { name: "build_minutes", limit: 240, used: 40.5, left: 199.5, available_at: null },
    { name: "device_minutes", limit: 60, used: 61, left: 0, available_at: "2126-01-01T00:04:00Z" },
  ];
  const { container } = await renderPart(both(live({ quote: { ...quote, quotas } })));
  expect(text(container)).toContain("Left of your quotas: 17 submissions at once, 199 min of builds.");
  expect(text(container)).toContain("Your quota of device time of 24 hours is used up; available again");
});

test("a note shared by all targets is shown once", async () => {
  const [a, b] = [
    { ...target, notes: ["every device waits"] },
    { ...target, plan: "crypt", notes: ["every device waits", "crypt is ahead"] },
  ];
  await renderPart(both(live({ quote: { ...quote, targets: [a, b] } })));
  expect(screen.getAllByText("every device waits")).toHaveLength(1);
  expect(screen.getAllByText("crypt is ahead")).toHaveLength(1);
});

test("the detectable effect is shown with its unit and delta", async () => {
  const detectable = {
    metric: "local_share",
    unit: "%",
    effect_unit: "points",
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
  expect(text(container)).toContain("1.23 points of local_share (threshold: 0.5 points)");
});

test("signed-out users and invalid forms see a message instead of a quote", async () => {
  const signedOutView = await renderPart(both(live({ quote: undefined, signedOut: true })));
  expect(text(signedOutView.container)).toContain("Sign in to see");
  signedOutView.unmount();
  const invalid = live({
    quote: undefined,
    error: new Error("2 errors"),
    errors: [{ pointer: "/blocks", detail: "no" }],
  });
  const { container } = await renderPart(both(invalid));
  expect(text(container)).toContain("Fix the errors in the form to see a quote.");
});
