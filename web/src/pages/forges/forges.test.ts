import { expect, test } from "vitest";
import { changeText, changeUrl, countsText, spendersText } from "./words";

test("heads are counted by state, in the order in which a head goes through them", () => {
  expect(countsText({})).toBe("No heads yet.");
  expect(countsText({ not_measured: 2, waiting: 1, measured: 0 })).toBe("Heads: 1 waiting, 2 not measured.");
});

test("who may spend device time is said", () => {
  expect(spendersText({ may_spend: "members", label: null })).toBe("accounts with write access");
  expect(spendersText({ may_spend: "listed", label: "wqlab: ok" })).toBe(
    "listed accounts, or one commit by the label wqlab: ok",
  );
});

test("a change is named and linked as its forge does", () => {
  const pull = { change: "pull/7", title: "wake one" };
  const branch = { change: "branch/wq/wake one", title: "" };
  expect([changeText(pull), changeText(branch)]).toEqual(["Pull request 7: wake one", "Branch wq/wake one"]);
  const url = "https://f.example/wq/linux";
  expect(changeUrl({ kind: "github", url }, pull)).toBe(`${url}/pull/7`);
  expect(changeUrl({ kind: "gitea", url }, pull)).toBe(`${url}/pulls/7`);
  expect(changeUrl({ kind: "gitlab", url }, pull)).toBe(`${url}/-/merge_requests/7`);
  expect(changeUrl({ kind: "github", url }, branch)).toBe(`${url}/tree/wq/wake%20one`);
  expect(changeUrl({ kind: "gitea", url }, branch)).toBe(`${url}/src/branch/wq/wake%20one`);
  expect(changeUrl({ kind: "gitlab", url }, branch)).toBe(`${url}/-/tree/wq/wake%20one`);
});
