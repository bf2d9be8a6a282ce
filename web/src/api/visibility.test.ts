import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { GRACE_MS, whileVisible } from "./visibility";

let hidden: boolean;
let started: number;
let stopped: number;

beforeEach(() => {
  vi.useFakeTimers();
  started = 0;
  stopped = 0;
  hidden = false;
  vi.spyOn(document, "hidden", "get").mockImplementation(() => hidden);
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

function follow() {
  return whileVisible(() => {
    started += 1;
    return () => {
      stopped += 1;
    };
  });
}

function setHidden(value: boolean) {
  hidden = value;
  document.dispatchEvent(new Event("visibilitychange"));
}

test("a hidden tab stops its stream and starts it again when visible", () => {
  const stop = follow();
  expect([started, stopped]).toEqual([1, 0]);
  setHidden(true);
  vi.advanceTimersByTime(GRACE_MS - 1);
  expect(stopped).toBe(0);
  vi.advanceTimersByTime(1);
  expect(stopped).toBe(1);
  setHidden(false);
  expect([started, stopped]).toEqual([2, 1]);
  stop();
  expect(stopped).toBe(2);
  setHidden(true);
  setHidden(false);
  expect(started).toBe(2);
});

test("a tab hidden for less than the grace period keeps its stream", () => {
  const stop = follow();
  setHidden(true);
  vi.advanceTimersByTime(GRACE_MS / 2);
  setHidden(false);
  vi.advanceTimersByTime(GRACE_MS * 2);
  expect([started, stopped]).toEqual([1, 0]);
  stop();
});

test("a tab opened in the background starts when it becomes visible", () => {
  hidden = true;
  const stop = follow();
  vi.advanceTimersByTime(GRACE_MS * 2);
  expect([started, stopped]).toEqual([0, 0]);
  setHidden(false);
  expect(started).toBe(1);
  stop();
});
