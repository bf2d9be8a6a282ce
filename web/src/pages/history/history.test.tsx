import { fireEvent, render, screen } from "@testing-library/react";
import { useState } from "react";
import { expect, test, vi } from "vitest";
import type { HistoryShift } from "@/api/types";
import { renderPart } from "@/testing/render";
import { Levels } from "./ChartMarks";
import { scalesOf } from "./geometry";
import { groupShifts, summaryOf } from "./groups";
import { LineChart } from "./LineChart";
import { changeOf, headText, measuredText, suspectedText } from "./labels";
import { changeText, levelText, pointText, valueText } from "./points";
import { changesOf, ShiftForm, statesFor } from "./ShiftForm";
import { ShiftGroups } from "./ShiftGroups";
import { HISTORY_PARAMS, isNarrowed, matchesLine, toLineFilters, toShiftFilters } from "./search";
import { makeLine, makeLineData, makePoint, makeShift } from "./testing";
import { useView } from "./useView";
import type { Shown, View } from "./view";

const NONE = { days: "7", tree: "", plan: "", type: "", metric: "", role: "", cursor: "" } as const;

test("only filters that are set are sent, and shifts are asked for since a full hour", () => {
  expect(toLineFilters(NONE, 5)).toEqual({ limit: 5 });
  expect(toLineFilters({ ...NONE, type: "xeon-2s", role: "primary", cursor: "c" }, 5)).toEqual({
    limit: 5,
    device_type: "xeon-2s",
    role: "primary",
    cursor: "c",
  });
  const now = new Date("2026-11-26T11:42:10Z");
  expect(toShiftFilters({ ...NONE, tree: "next" }, now, 9)).toEqual({
    limit: 9,
    since: "2026-11-19T11:00:00.000Z",
    tree: "next",
  });
  expect(HISTORY_PARAMS.days.read("31")).toBe("7");
  expect(isNarrowed({ ...NONE, days: "90" })).toBe(false);
  expect(isNarrowed({ ...NONE, metric: "locks" })).toBe(true);
  expect(matchesLine({ ...NONE, metric: "bw" }, makeLine())).toBe(false);
  expect(matchesLine({ ...NONE, role: "primary" }, makeLine())).toBe(true);
});

test("a change is a sign and a word, without a tone when it is not one", () => {
  const looks = (of: Partial<HistoryShift>) => {
    const { sign, word, tone } = changeOf(makeShift(of));
    return `${sign} ${word} ${tone}`;
  };
  expect(looks({})).toBe("\u2212 worse bad");
  expect(looks({ worse: false, state: "confirmed" })).toBe("+ better good");
  expect(looks({ worse: null })).toBe("± changed unsure");
  expect(looks({ state: "not_reproduced" })).toBe("\u2212 worse none");
});

test("a shift that could not be reproduced keeps both figures", () => {
  const shift = makeShift({ state: "not_reproduced", effect: 0.4, ci95: [-0.6, 1.4] });
  expect(suspectedText(shift)).toBe("+17.6 %");
  expect(measuredText(shift)).toBe("+0.40 % [\u22120.60, +1.40]");
  expect(measuredText(makeShift())).toBe("");
});

test("heads are named by tag, or by commit on a branch", () => {
  const head = { id: 1, name: "for-next", commit: "0123456789abcdef" };
  expect(headText(head, { ref: "for-next" })).toBe("0123456789ab");
  expect(headText({ ...head, name: "v6.12.3" }, { ref: "v6.12.*" })).toBe("v6.12.3");
});

test("a point in words has its value, change, verdict and environment", () => {
  const line = makeLine();
  const point = makePoint(1, { effect: 17.6, ci95: [16.1, 19], verdict: "regression", cut: "disk a -> b" });
  expect(valueText(point, line)).toBe("34.00 ±0.50 locks");
  expect(valueText(makePoint(1, { n: 1, stddev: null }), line)).toBe("34 locks");
  expect(changeText(makePoint(0), line)).toBe("");
  expect(pointText(point, line)).toContain(
    "34.00 ±0.50 locks (4 boots) · +17.6 % [+16.1, +19.0] from the head before · regression · environment changed: disk a -> b",
  );
  expect(levelText({ level: { start: 0, end: 2, middle: 34, spread: 0 }, unit: "locks" })).toBe("34 locks");
});

test("shifts are grouped by device type, open ones first", () => {
  const on = (id: number, device_type: string, of: Partial<HistoryShift> = {}) =>
    makeShift({ id, line: makeLine({ device_type }), ...of });
  const groups = groupShifts([
    on(1, "arm", { state: "fixed" }),
    on(2, "xeon", { worse: false }),
    on(3, "xeon", { state: "explained" }),
    on(4, "xeon"),
  ]);
  expect(groups.map(({ type, shifts }) => [type, shifts.map(each => each.id)])).toEqual([
    ["xeon", [4, 2, 3]],
    ["arm", [1]],
  ]);
  expect(summaryOf(groups[0]?.shifts ?? [])).toBe("1 worse, 1 better, 1 explained");
});

test("each device type has a table, and those without a shift are named", async () => {
  const shifts = [
    makeShift(),
    makeShift({ id: 2, state: "confirmed", submission_id: 12, effect: 17, ci95: [16, 18] }),
  ];
  await renderPart(<ShiftGroups shifts={shifts} types={["xeon-2s", "ryzen"]} />);
  const table = screen.getByRole("table", { name: "xeon-2s: 2 worse" });
  expect(table.textContent).toContain("+17.0 % [+16.0, +18.0]");
  expect(table.textContent).toContain("not submitted yet");
  expect(screen.getByRole("link", { name: "submission 12" }).getAttribute("href")).toBe("/submissions/12");
  expect(screen.getByText("No shift on ryzen.")).toBeTruthy();
});

function Chart({ size, onShown }: { size: number; onShown(shown: Shown): void }) {
  const [line] = useState(() => makeLineData(size));
  const [shown, setShown] = useState<Shown>({ range: { start: 0, end: size }, at: null });
  return (
    <LineChart
      line={line}
      floor={null}
      shown={shown}
      places={[]}
      onShown={next => {
        setShown(next);
        onShown(next);
      }}
    />
  );
}

test("the chart is read and zoomed by keys, and leaves other keys to the browser", async () => {
  const onShown = vi.fn();
  await renderPart(<Chart size={40} onShown={onShown} />);
  const chart = screen.getByRole("slider", { name: "Heads of locks on xeon-2s" });
  expect(chart.getAttribute("aria-valuetext")).toBe("none of 40 heads selected");
  fireEvent.keyDown(chart, { key: "Home" });
  fireEvent.keyDown(chart, { key: "ArrowRight" });
  expect(chart.getAttribute("aria-valuenow")).toBe("2");
  expect(chart.getAttribute("aria-valuetext")).toContain("34.00 ±0.50 locks (4 boots)");
  fireEvent.keyDown(chart, { key: "+" });
  expect(onShown).toHaveBeenLastCalledWith({ range: { start: 1, end: 21 }, at: 1 });
  fireEvent.keyDown(chart, { key: "Escape" });
  expect(onShown).toHaveBeenLastCalledWith({ range: { start: 0, end: 40 }, at: 1 });
  const calls = onShown.mock.calls.length;
  expect(fireEvent.keyDown(chart, { key: "Tab" })).toBe(true);
  expect(fireEvent.keyDown(chart, { key: "+", ctrlKey: true })).toBe(true);
  expect(onShown).toHaveBeenCalledTimes(calls);
});

function ViewOf({ inUrl, write }: { inUrl: View; write(view: View): void }) {
  const [view, setView] = useView(inUrl, write);
  return (
    <button type="button" onClick={() => setView({ ...view, at: (view.at ?? 0) + 1 })}>
      at {String(view.at)}
    </button>
  );
}

test("a changed view is shown at once and written once, when keys are at rest", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  try {
    const write = vi.fn();
    await renderPart(<ViewOf inUrl={{ from: null, to: null, at: 4 }} write={write} />);
    const button = screen.getByRole("button");
    fireEvent.click(button);
    fireEvent.click(button);
    expect(button.textContent).toBe("at 6");
    expect(write).not.toHaveBeenCalled();
    vi.advanceTimersByTime(300);
    expect(write.mock.calls).toEqual([[{ from: null, to: null, at: 6 }]]);
  } finally {
    vi.useRealTimers();
  }
});

test("a view is not written after a link to another page was followed", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const page = location.pathname;
  try {
    const write = vi.fn();
    await renderPart(<ViewOf inUrl={{ from: null, to: null, at: 4 }} write={write} />);
    fireEvent.click(screen.getByRole("button"));
    history.pushState(null, "", "/submissions/62");
    vi.advanceTimersByTime(300);
    expect(write).not.toHaveBeenCalled();
  } finally {
    history.replaceState(null, "", page);
    vi.useRealTimers();
  }
});

test("people cannot set what only a paired run says", () => {
  expect(statesFor({ state: "new", effect: null })).toEqual(["new", "explained", "fixed"]);
  expect(statesFor({ state: "confirmed", effect: 3 })).toEqual(["new", "confirmed", "explained", "fixed"]);
  expect(statesFor({ state: "not_reproduced", effect: 0.2 })[0]).toBe("not_reproduced");
});

test("only what was changed is sent", () => {
  const shift = makeShift({ owner: "kay", notes: "x" });
  expect(changesOf(shift, { state: "new", owner: " kay ", notes: "x" })).toEqual({});
  expect(changesOf(shift, { state: "fixed", owner: "", notes: "x" })).toEqual({ state: "fixed", owner: "" });
});

test("a refused change shows the server's message at its field and keeps what was typed", async () => {
  const problem = {
    type: "about:blank",
    title: "Invalid",
    status: 422,
    detail: "the request has mistakes",
    errors: [{ pointer: "/owner", detail: "there is no account 'nobody'" }],
  };
  const sent: unknown[] = [];
  vi.spyOn(globalThis, "fetch").mockImplementation(async request => {
    sent.push(await (request as Request).clone().json());
    return new Response(JSON.stringify(problem), {
      status: 422,
      headers: { "content-type": "application/problem+json" },
    });
  });
  await renderPart(<ShiftForm shift={makeShift()} user="dev" />);
  fireEvent.change(screen.getByLabelText("Owner"), { target: { value: "nobody" } });
  fireEvent.click(screen.getByRole("button", { name: "Save" }));
  expect(await screen.findByText("there is no account 'nobody'")).toBeTruthy();
  expect(sent).toEqual([{ owner: "nobody" }]);
  expect((screen.getByLabelText("Owner") as HTMLInputElement).value).toBe("nobody");
  fireEvent.click(screen.getByRole("button", { name: "Take it over" }));
  expect((screen.getByLabelText("Owner") as HTMLInputElement).value).toBe("dev");
});

test("a measured noise floor is drawn around each level", () => {
  const { levels } = makeLineData(20);
  const range = { start: 0, end: 20 };
  const scales = scalesOf(range, [30, 45], { left: 0, right: 200, top: 0, bottom: 150 });
  const floor = { deviation: 1, unit: "%", device: "xeon-1", canaries: 12 };
  const { container, rerender } = render(
    <svg aria-hidden="true">
      <Levels levels={levels} floor={floor} range={range} scales={scales} />
    </svg>,
  );
  const drawn = [...container.querySelectorAll("[data-floor]")];
  expect(drawn.map(each => each.getAttribute("data-floor"))).toEqual(["0.68", "0.8"]);
  // Two lines, at 34 - 0.68 and 34 + 0.68.
  expect(drawn[0]?.getAttribute("d")).toMatch(/^M0 116\.\d+H100M0 103\.\d+H100$/);
  rerender(
    <svg aria-hidden="true">
      <Levels levels={levels} floor={null} range={range} scales={scales} />
    </svg>,
  );
  expect(container.querySelectorAll("[data-floor]")).toHaveLength(0);
});
