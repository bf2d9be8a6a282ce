import { expect, test } from "vitest";
import type { DeviceTypeView, TestPlan } from "@/api/types";
import { commandOf, draftOf, FAILURE, metricsOf, requestOf } from "./draft";
import { NEW_BISECTION } from "./search";

const linked = NEW_BISECTION.read({
  tree: "linux",
  good: "v6.16",
  bad: "for-next",
  plan: "xfs-fsync",
  type: "tiny",
  metric: "locks_per_flush",
  setting: "scope=cache,strict=1",
  submission: "12",
});

test("a link fills in the form, and empty fields are left to the server", () => {
  expect(requestOf({ ...draftOf(linked), good: " v6.16 ", blocks: "4" })).toEqual({
    tree: "linux",
    good: "v6.16",
    bad: "for-next",
    ref: null,
    plan: "xfs-fsync",
    device_type: "tiny",
    scenario: null,
    setting: "scope=cache,strict=1",
    metric: "locks_per_flush",
    failure: false,
    blocks: 4,
    step_blocks: null,
    into_merges: true,
    recipe: null,
    submission: 12,
  });
});

test("a failure is searched without a metric", () => {
  const draft = draftOf(NEW_BISECTION.read({ failure: "1", metric: "locks" }));
  expect(draft.what).toBe(FAILURE);
  expect(requestOf(draft)).toMatchObject({ metric: null, failure: true });
});

test("the command does the same, quoted for a shell", () => {
  expect(commandOf(requestOf(draftOf(linked)))).toBe(
    "wqlab bisect --good v6.16 --bad for-next --tree linux --target xfs-fsync@tiny --metric locks_per_flush " +
      "--setting scope=cache,strict=1 --wait",
  );
  const odd = requestOf({ ...draftOf(linked), good: "it's; rm", what: FAILURE, firstParent: true });
  expect(commandOf(odd)).toContain("--good 'it'\\''s; rm' ");
  expect(commandOf(odd)).toContain("--failure");
  expect(commandOf(odd)).toContain("--first-parent --wait");
});

test("the primary metric of the device type comes first", () => {
  const metrics = [
    { name: "time", role_hardware: "primary", role_emulated: "explanatory" },
    { name: "locks", role_hardware: "secondary", role_emulated: "primary" },
  ];
  const plan = { metrics } as unknown as TestPlan;
  expect(metricsOf(plan, { emulated: true } as DeviceTypeView)).toEqual(["locks", "time"]);
  expect(metricsOf(plan, { emulated: false } as DeviceTypeView)).toEqual(["time", "locks"]);
  expect(metricsOf(undefined, undefined)).toEqual([]);
});
