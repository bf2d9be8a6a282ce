import { act, renderHook } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { useTyped } from "./useTyped";

beforeEach(() => {
  vi.useFakeTimers();
  history.replaceState(null, "", "/submissions");
});
afterEach(() => vi.useRealTimers());

function typing(told?: (typed: string) => string) {
  const onTyped = vi.fn();
  const { result, rerender } = renderHook(({ given }) => useTyped(given, onTyped, told), {
    initialProps: { given: "" },
  });
  const type = (text: string) => act(() => result.current[1](text));
  const pause = () => act(() => vi.advanceTimersByTime(1000));
  return {
    onTyped,
    shown: () => result.current[0],
    type,
    pause,
    give: (given: string) => rerender({ given }),
  };
}

test("it is told once, when the typing pauses, and shows at once", () => {
  const { onTyped, shown, type, pause } = typing();
  type("f");
  type("fl");
  expect(shown()).toBe("fl");
  expect(onTyped).not.toHaveBeenCalled();
  pause();
  expect(onTyped.mock.calls).toEqual([["fl"]]);
});

test("what is told comes back without changing what is typed", () => {
  const { onTyped, shown, type, pause, give } = typing(text => text.trim());
  type("flush ");
  pause();
  give("flush");
  expect(onTyped.mock.calls).toEqual([["flush"]]);
  expect(shown()).toBe("flush ");
  give("other");
  expect(shown()).toBe("other");
});

test("on the way to another page nothing is told", () => {
  const { onTyped, type, pause } = typing();
  type("flush");
  history.pushState(null, "", "/lab");
  pause();
  expect(onTyped).not.toHaveBeenCalled();
});
