import { expect, test } from "vitest";
import { submitSearch } from "../route";
import { chosen, type Draft, numberOrText, requestOf, wanted, withChosen, withParameter } from "./draft";

const draft = (change: Partial<Draft>): Draft => ({ ...submitSearch.defaults, ...change });
const both = draft({ plan: ["crypt", "fsync"], type: ["ryzen", "xeon"] });

test("plans and device types make every pair but those that are left out", () => {
  expect(wanted({ ...both, without: ["crypt@xeon"] })).toEqual([
    { plan: "crypt", type: "ryzen" },
    { plan: "fsync", type: "ryzen" },
    { plan: "fsync", type: "xeon" },
  ]);
});

test("a choice is a plan's for every device type, or one device type's", () => {
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
  expect(chosen(withChosen(some, "scenario", "crypt@xeon", null), "scenario", "crypt@xeon")).toBeNull();
});

test("choosing none is told from choosing nothing, for the server to refuse it", () => {
  const none = withChosen(both, "setting", "crypt", []);
  expect(chosen(none, "setting", "crypt")).toEqual([]);
  expect(requestOf(none, null, "linux").targets[0]?.settings).toEqual([]);
});

test("a parameter of one device type is over that for all; an emptied one is the plan's again", () => {
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

test("parameters are read as the command reads them", () => {
  expect(["5", "0.5", "-3", "32k", "1e3", "007", "a=b", ""].map(numberOrText)).toEqual([
    5,
    0.5,
    -3,
    "32k",
    "1e3",
    "007",
    "a=b",
    "",
  ]);
});

test("what is typed for a number goes to the server as typed, what is left empty as its default", () => {
  expect(requestOf(draft({ blocks: " 3 ", priority: "high" }), null, "linux")).toMatchObject({
    blocks: 3,
    priority: "high",
  });
  expect(requestOf(draft({}), null, "linux")).toMatchObject({ blocks: null, priority: 50, tree: "linux" });
  expect(requestOf(draft({ recipe: "debug" }), null, "linux").recipe).toBe("debug");
  expect(requestOf(draft({}), null, "linux")).not.toHaveProperty("recipe");
});

test("only the chosen kind of series is sent, whatever was filled in for the others", () => {
  const git = draft({ git: " https://git.example/linux.git ", ref: "mine", base: "" });
  const mbox = { name: "a.mbox", text: "From a" };
  expect(requestOf(git, mbox, "linux").series).toEqual({
    git: { url: "https://git.example/linux.git", ref: "mine" },
  });
  expect(requestOf({ ...git, source: "mbox" }, mbox, "linux").series).toEqual({ mbox: { text: "From a" } });
  expect(requestOf({ ...git, source: "settings" }, mbox, "linux").series).toBeNull();
});
