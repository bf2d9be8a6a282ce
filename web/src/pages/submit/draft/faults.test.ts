import { expect, test } from "vitest";
import { submitSearch } from "../route";
import { type Draft, withChosen, withParameter } from "./draft";
import { faultsOf, missing, spokenOf } from "./faults";

const draft: Draft = { ...submitSearch.defaults, plan: ["crypt", "fsync"], type: ["ryzen", "xeon"] };
const place = (pointer: string, of = draft) => [...faultsOf([{ pointer, detail: "no" }], of).keys()][0];

test.each([
  ["/series/git/url", "git"],
  ["/series/mbox/text", "mbox"],
  ["/tree", "tree"],
  ["/targets", "targets"],
  ["/targets/1/device_type", "type:xeon"],
  ["/targets/2/plan", "plan:fsync"],
  ["/targets/2", "target:fsync@ryzen"],
  ["/targets/0/settings/1", "setting:crypt"],
  ["/targets/0/scenarios", "scenario:crypt"],
  ["/targets/0/parameters/a~1b~0", "param:crypt:a/b~"],
  ["/something/new", ""],
])("a mistake at %s is shown at %s", (pointer, field) => {
  expect(place(pointer)).toBe(field);
});

test("it is shown where the choice was made", () => {
  const own = withParameter(withChosen(draft, "setting", "crypt@xeon", ["x=1"]), "crypt@xeon", "ios", "many");
  expect(place("/targets/1/settings/0", own)).toBe("setting:crypt@xeon");
  expect(place("/targets/1/parameters/ios", own)).toBe("param:crypt@xeon:ios");
  expect(place("/targets/0/settings/0", own)).toBe("setting:crypt");
});

test("targets that were left out do not move the others", () => {
  expect(place("/targets/1/device_type", { ...draft, without: ["crypt@xeon"] })).toBe("type:ryzen");
});

test("one mistake that several targets share is said once", () => {
  const same = { detail: "no knob 'x'" };
  const faults = faultsOf(
    [
      { pointer: "/targets/0/settings/0", ...same },
      { pointer: "/targets/1/settings/0", ...same },
    ],
    draft,
  );
  expect([...faults]).toEqual([["setting:crypt", ["no knob 'x'"]]]);
});

test("empty fields are not scolded while the form is filled in", () => {
  const faults = faultsOf(
    [
      { pointer: "/series/git/url", detail: "no scheme" },
      { pointer: "/series/git/ref", detail: "no branch name" },
    ],
    draft,
  );
  expect([...spokenOf(faults, { ...draft, git: "htps://a/b" }, false).keys()]).toEqual(["git"]);
});

test("what is missing is said before anything is asked", () => {
  expect(missing(submitSearch.defaults, false).map(each => each.pointer)).toEqual([
    "/series/git/url",
    "/series/git/ref",
    "/targets",
    "/targets",
  ]);
  expect(missing({ ...draft, source: "mbox" }, true)).toEqual([]);
  expect(missing({ ...draft, source: "settings", without: ["crypt@ryzen"] }, false)).toEqual([]);
});
