import { expect, test } from "vitest";
import { submitSearch } from "../search";
import {
  countTargets,
  type Draft,
  optionValues,
  requestOf,
  selectedTargets,
  withChosen,
  withParameter,
} from "./draft";

const draft = (change: Partial<Draft>): Draft => ({ ...submitSearch.defaults, ...change });
const both = draft({ plan: ["crypt", "fsync"], type: ["ryzen", "xeon"] });

test("targets are all pairs of plan and device type except excluded ones", () => {
  expect(selectedTargets({ ...both, without: ["crypt@xeon"] })).toEqual([
    { plan: "crypt", type: "ryzen" },
    { plan: "fsync", type: "ryzen" },
    { plan: "fsync", type: "xeon" },
  ]);
});

test("options apply to a plan, or to a plan on one device type", () => {
  const some = withChosen(withChosen(both, "scenario", "crypt", ["HIGH"]), "scenario", "crypt@xeon", [
    "LOW",
    "MED",
  ]);
  const { targets } = requestOf(some, null, "linux");
  expect(targets.map(each => [each.plan, each.device_type, each.scenarios])).toEqual([
    ["crypt", "ryzen", ["HIGH"]],
    ["crypt", "xeon", ["LOW", "MED"]],
    ["fsync", "ryzen", undefined],
    ["fsync", "xeon", undefined],
  ]);
  expect(optionValues(withChosen(some, "scenario", "crypt@xeon", null), "scenario", "crypt@xeon")).toBeNull();
});

test("an empty selection is sent and differs from no selection", () => {
  const none = withChosen(both, "setting", "crypt", []);
  expect(optionValues(none, "setting", "crypt")).toEqual([]);
  expect(requestOf(none, null, "linux").targets[0]?.settings).toEqual([]);
});

test("a device type's parameter overrides the plan's; an empty value resets it", () => {
  const all = withParameter(both, "crypt", "total_ios", "64");
  const one = withParameter(all, "crypt@xeon", "total_ios", "128");
  expect(requestOf(one, null, "linux").targets.map(each => each.parameters)).toEqual([
    { total_ios: 64 },
    { total_ios: 128 },
    undefined,
    undefined,
  ]);
  expect(withParameter(all, "crypt", "total_ios", " ").param).toEqual([]);
});

test("invalid numbers are sent as typed, empty ones as the default", () => {
  expect(requestOf(draft({ blocks: " 3 ", priority: "high" }), null, "linux")).toMatchObject({
    blocks: 3,
    priority: "high",
  });
  expect(requestOf(draft({}), null, "linux")).toMatchObject({ blocks: null, priority: 50, tree: "linux" });
  expect(requestOf(draft({ recipe: "debug" }), null, "linux").recipe).toBe("debug");
  expect(requestOf(draft({}), null, "linux")).not.toHaveProperty("recipe");
});

test("one number of blocks is a fixed size, several are looks", () => {
  const sizeOf = (blocks: string) => {
    const { blocks: fixed, looks } = requestOf(draft({ blocks }), null, "linux");
    return { fixed, looks };
  };
  expect(sizeOf("8")).toEqual({ fixed: 8, looks: undefined });
  expect(sizeOf("6, 10,16")).toEqual({ fixed: null, looks: [6, 10, 16] });
  expect(sizeOf("6,many").looks).toEqual([6, "many"]);
});

test("traced boots are the default", () => {
  expect(requestOf(draft({}), null, "linux")).not.toHaveProperty("trace");
  expect(requestOf(draft({ trace: "no" }), null, "linux").trace).toBe(false);
});

test("only the selected kind of series is sent", () => {
  const git = draft({ git: " https://git.example/linux.git ", ref: "mine", base: "" });
  const mbox = { name: "a.mbox", text: "From a" };
  expect(requestOf(git, mbox, "linux").series).toEqual({
    git: { url: "https://git.example/linux.git", ref: "mine" },
  });
  expect(requestOf({ ...git, source: "mbox" }, mbox, "linux").series).toEqual({ mbox: { text: "From a" } });
  expect(requestOf({ ...git, source: "settings" }, mbox, "linux").series).toBeNull();
});

test("a walk is asked for only if its box is ticked", () => {
  expect(requestOf({ ...both, walk: "patch" }, null, "linux").walk).toBe(true);
  expect(requestOf(both, null, "linux")).not.toHaveProperty("walk");
});

test("a sweep replaces the device types; what is not entered has the lab's default", () => {
  const swept: Draft = { ...both, vary: "l3", values: "1, 2,4 8", cpus: " 32 ", l3: "9" };
  expect(requestOf(swept, null, "linux")).toMatchObject({
    targets: [{ plan: "crypt" }, { plan: "fsync" }],
    sweep: { vary: "l3", values: [1, 2, 4, 8], base: { cpus: 32 } },
  });
  expect(requestOf(swept, null, "linux").targets[0]).not.toHaveProperty("device_type");
  expect(requestOf(swept, null, "linux").sweep?.base).toEqual({ cpus: 32 });
  expect([countTargets(swept), countTargets(both)]).toEqual([8, 4]);
  expect(requestOf({ ...swept, values: "1,x" }, null, "linux").sweep?.values).toEqual([1, "x"]);
  expect(requestOf(swept, null, "linux").sweep).not.toHaveProperty("costs");
  expect(requestOf({ ...swept, costs: " xeon-2s " }, null, "linux").sweep?.costs).toBe("xeon-2s");
  expect(requestOf(both, null, "linux")).not.toHaveProperty("sweep");
});

test("a plan's options apply to its targets in a sweep", () => {
  const swept = withChosen({ ...both, vary: "cpus", values: "8,16" }, "scenario", "crypt", ["HIGH"]);
  expect(requestOf(swept, null, "linux").targets.map(each => each.scenarios)).toEqual([["HIGH"], undefined]);
});

test("a mailed series is sent with its id, and a revision only if one is entered", () => {
  const mailed = draft({ source: "thread", message: " <a@b.example> ", revision: "" });
  expect(requestOf(mailed, null, "linux").series).toEqual({ thread: { message_id: "<a@b.example>" } });
  expect(requestOf({ ...mailed, revision: "2" }, null, "linux").series).toEqual({
    thread: { message_id: "<a@b.example>", revision: 2 },
  });
});
