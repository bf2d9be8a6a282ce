import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { submitSearch } from "../route";

const typed = { ...submitSearch.defaults, git: "https://git.example/a.git" };

/** As after a reload: what a tab's store has is there, what a module remembers is not. */
async function reloaded() {
  vi.resetModules();
  return await import("./keep");
}

beforeEach(() => sessionStorage.clear());
afterEach(() => vi.unstubAllGlobals());

test("the last keystrokes are there again on the address that they were typed on, and on the bare page", async () => {
  (await reloaded()).keepDraft(typed, "address");
  const { keptDraft } = await reloaded();
  expect(keptDraft("address", "empty")).toEqual(typed);
  expect(keptDraft("empty", "empty")).toEqual(typed);
  expect(keptDraft("somebody's link", "empty")).toBeNull();
});

test("an mbox survives a reload; removed, it is gone", async () => {
  const mbox = { name: "v2.mbox", text: "From a" };
  expect((await reloaded()).keepMbox(mbox)).toBe(true);
  expect((await reloaded()).keptMbox()).toEqual(mbox);
  (await reloaded()).keepMbox(null);
  expect((await reloaded()).keptMbox()).toBeNull();
});

test("what the browser has no room for lasts as long as the page", async () => {
  vi.stubGlobal("sessionStorage", {
    getItem: () => null,
    removeItem: () => undefined,
    setItem: () => {
      throw new DOMException("full", "QuotaExceededError");
    },
  });
  const keep = await reloaded();
  expect(keep.keepMbox({ name: "huge.mbox", text: "From a" })).toBe(false);
  expect(keep.keptMbox()?.name).toBe("huge.mbox");
});
