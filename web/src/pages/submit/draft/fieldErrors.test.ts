import { expect, test } from "vitest";
import { submitSearch } from "../search";
import { type Draft, withChosen, withParameter } from "./draft";
import { fieldErrorsOf, missingInput, withoutEmptyFields } from "./fieldErrors";

const draft: Draft = { ...submitSearch.defaults, plan: ["crypt", "fsync"], type: ["ryzen", "xeon"] };
const place = (pointer: string, of = draft) => [...fieldErrorsOf([{ pointer, detail: "no" }], of).keys()][0];

test.each([
  ["/series/git/url", "git"],
  ["/series/mbox/text", "mbox"],
  ["/tree", "tree"],
  ["/targets", "targets"],
  ["/targets/1/device_type", "targets"],
  ["/targets/2/plan", "targets"],
  ["/targets/2", "targets"],
  ["/targets/0/settings/1", "setting:crypt"],
  ["/targets/0/scenarios", "scenario:crypt"],
  ["/targets/0/parameters/a~1b~0", "param:crypt:a/b~"],
  ["/something/new", ""],
])("an error at %s is assigned to field %s", (pointer, field) => {
  expect(place(pointer)).toBe(field);
});

test.each([
  ["/sweep", "vary"],
  ["/sweep/values", "values"],
  ["/sweep/values/2", "values"],
  ["/sweep/base/cpus", "cpus"],
  ["/sweep/costs", "costs"],
  ["/targets/1/plan", "targets"],
  ["/targets/0/device_type", "vary"],
  ["/targets/0/settings/0", "setting:crypt"],
])("an error of a sweep at %s is assigned to field %s", (pointer, field) => {
  expect(place(pointer, { ...draft, vary: "l3", values: "1,2" })).toBe(field);
});

test("a sweep needs values and no device type", () => {
  const swept: Draft = { ...draft, source: "settings", type: [], vary: "l3" };
  expect(missingInput(swept, false).map(each => each.pointer)).toEqual(["/sweep/values"]);
  expect(missingInput({ ...swept, values: "1,2" }, false)).toEqual([]);
});

test("an option's error is assigned to the holder that sets it", () => {
  const own = withParameter(withChosen(draft, "setting", "crypt@xeon", ["x=1"]), "crypt@xeon", "ios", "many");
  expect(place("/targets/1/settings/0", own)).toBe("setting:crypt@xeon");
  expect(place("/targets/1/parameters/ios", own)).toBe("param:crypt@xeon:ios");
  expect(place("/targets/0/settings/0", own)).toBe("setting:crypt");
});

test("excluded targets do not shift target indexes", () => {
  expect(place("/targets/1/settings/0", { ...draft, without: ["crypt@xeon"] })).toBe("setting:fsync");
});

test("an error shared by several targets is listed once", () => {
  const same = { detail: "no knob 'x'" };
  const errors = fieldErrorsOf(
    [
      { pointer: "/targets/0/settings/0", ...same },
      { pointer: "/targets/1/settings/0", ...same },
    ],
    draft,
  );
  expect([...errors]).toEqual([["setting:crypt", ["no knob 'x'"]]]);
});

test("errors of empty fields are hidden while the form is edited", () => {
  const errors = fieldErrorsOf(
    [
      { pointer: "/series/git/url", detail: "no scheme" },
      { pointer: "/series/git/ref", detail: "no branch name" },
    ],
    draft,
  );
  expect([...withoutEmptyFields(errors, { ...draft, git: "htps://a/b" }, false).keys()]).toEqual(["git"]);
});

test("missing input is detected without a request", () => {
  expect(missingInput(submitSearch.defaults, false).map(each => each.pointer)).toEqual([
    "/series/git/url",
    "/targets",
  ]);
  expect(missingInput({ ...draft, source: "mbox" }, true)).toEqual([]);
  expect(missingInput({ ...draft, source: "settings", without: ["crypt@ryzen"] }, false)).toEqual([]);
});
