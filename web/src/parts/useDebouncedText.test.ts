import { act, renderHook } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { useDebouncedText } from "./useDebouncedText";

beforeEach(() => {
  vi.useFakeTimers();
  history.replaceState(null, "", "/submissions");
});
afterEach(() => vi.useRealTimers());

function typing(normalize?: (typed: string) => string) {
  const onChange = vi.fn();
  const { result, rerender } = renderHook(({ value }) => useDebouncedText(value, onChange, normalize), {
    initialProps: { value: "" },
  });
  const type = (text: string) => act(() => result.current[1](text));
  const pause = () => act(() => vi.advanceTimersByTime(1000));
  return {
    onChange,
    shown: () => result.current[0],
    type,
    pause,
    setValue: (value: string) => rerender({ value }),
  };
}

test("typed text shows at once and is reported once, after a pause", () => {
  const { onChange, shown, type, pause } = typing();
  type("f");
  type("fl");
  expect(shown()).toBe("fl");
  expect(onChange).not.toHaveBeenCalled();
  pause();
  expect(onChange.mock.calls).toEqual([["fl"]]);
});

test("the reported value coming back does not change the typed text", () => {
  const { onChange, shown, type, pause, setValue } = typing(text => text.trim());
  type("flush ");
  pause();
  setValue("flush");
  expect(onChange.mock.calls).toEqual([["flush"]]);
  expect(shown()).toBe("flush ");
  setValue("other");
  expect(shown()).toBe("other");
});

test("nothing is reported after navigation to another page", () => {
  const { onChange, type, pause } = typing();
  type("flush");
  history.pushState(null, "", "/lab");
  pause();
  expect(onChange).not.toHaveBeenCalled();
});
