import { expect, test } from "vitest";
import { fits, nameParts, signsAbove, spanOf, ticksOf } from "./gantt";

const at = (text: string) => new Date(text).getTime();
const DAY = { since: at("2026-11-20T19:52"), until: at("2026-11-21T19:52"), now: at("2026-11-21T19:52") };

test("a day has ticks at round hours and the date at midnight", () => {
  const ticks = ticksOf(DAY.since, DAY.until, 8);
  expect(ticks.map(tick => tick.label)).toEqual([
    "21:00",
    "11-21",
    "03:00",
    "06:00",
    "09:00",
    "12:00",
    "15:00",
    "18:00",
  ]);
  expect(ticks[0]?.left).toBeCloseTo((100 * 68) / 1440);
});

test("no window has more ticks than requested", () => {
  for (const hours of [0.1, 1, 6, 24, 168, 720, 8000]) {
    const ticks = ticksOf(DAY.until - hours * 3_600_000, DAY.until, 8);
    expect(ticks.length).toBeGreaterThan(0);
    expect(ticks.length).toBeLessThanOrEqual(9);
  }
});

test("a span is clipped to the window", () => {
  expect(spanOf(at("2026-11-20T07:52"), at("2026-11-21T07:52"), DAY)).toEqual({ left: 0, width: 50 });
  expect(spanOf(at("2026-11-21T13:52"), null, DAY)).toEqual({ left: 75, width: 25 });
});

test("an unfinished span ends now, not at the end of the window", () => {
  const window = { ...DAY, now: at("2026-11-21T07:52") };
  expect(spanOf(at("2026-11-21T01:52"), null, window)).toEqual({ left: 25, width: 25 });
});

test("a span outside the window is not drawn", () => {
  expect(spanOf(at("2026-11-19T00:00"), at("2026-11-19T01:00"), DAY)).toBeNull();
  expect(spanOf(at("2026-11-22T00:00"), null, DAY)).toBeNull();
});

test("a name keeps the suffix that distinguishes similar devices", () => {
  expect(nameParts("two-socket-xeon-2")).toEqual(["two-socket-xeon", "-2"]);
  expect(nameParts("tiny")).toEqual(["", "tiny"]);
  expect(nameParts("averylongnameofaboard12")).toEqual(["averylongnameof", "aboard12"]);
  expect(nameParts("")).toEqual(["", ""]);
  for (const name of ["a-b", "x", "rack.3/unit-", "-"]) expect(nameParts(name).join("")).toBe(name);
});

test("a text is shown in a bar only if it fits", () => {
  const place = { left: 10, width: 5 };
  expect(fits("12", place, 1000)).toBe(true);
  expect(fits("! 1234", place, 1000)).toBe(false);
  expect(fits("12", place, 0)).toBe(false);
});

test("signs above bars do not overlap; the highest priority is kept", () => {
  const signs = [
    { left: 50, text: "!" },
    { left: 10, text: "/" },
    { left: 10.5, text: "!" },
    { left: 11, text: "/" },
    { left: 12, text: "›" },
  ];
  expect(signsAbove(signs, 1000, "/›!")).toEqual([
    { left: 10, text: "!" },
    { left: 12, text: "›" },
    { left: 50, text: "!" },
  ]);
  expect(signsAbove(signs, 0, "/›!")).toEqual([{ left: 10, text: "!" }]);
  expect(signs[1]).toEqual({ left: 10, text: "/" });
});
