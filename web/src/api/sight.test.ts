import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { GRACE_MS, whileInSight } from "./sight";

let hidden: boolean;
let begun: number;
let ended: number;

beforeEach(() => {
  vi.useFakeTimers();
  begun = 0;
  ended = 0;
  hidden = false;
  vi.spyOn(document, "hidden", "get").mockImplementation(() => hidden);
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

function follow() {
  return whileInSight(() => {
    begun += 1;
    return () => {
      ended += 1;
    };
  });
}

function turn(away: boolean) {
  hidden = away;
  document.dispatchEvent(new Event("visibilitychange"));
}

test("a tab that is left lets go of its stream, and takes it up again when it is looked at", () => {
  const stop = follow();
  expect([begun, ended]).toEqual([1, 0]);
  turn(true);
  vi.advanceTimersByTime(GRACE_MS - 1);
  expect(ended).toBe(0);
  vi.advanceTimersByTime(1);
  expect(ended).toBe(1);
  turn(false);
  expect([begun, ended]).toEqual([2, 1]);
  stop();
  expect(ended).toBe(2);
  turn(true);
  turn(false);
  expect(begun).toBe(2);
});

test("a glance at another tab changes nothing", () => {
  const stop = follow();
  turn(true);
  vi.advanceTimersByTime(GRACE_MS / 2);
  turn(false);
  vi.advanceTimersByTime(GRACE_MS * 2);
  expect([begun, ended]).toEqual([1, 0]);
  stop();
});

test("a tab that was opened in the background waits until it is looked at", () => {
  hidden = true;
  const stop = follow();
  vi.advanceTimersByTime(GRACE_MS * 2);
  expect([begun, ended]).toEqual([0, 0]);
  turn(false);
  expect(begun).toBe(1);
  stop();
});
