import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { submitSearch } from "../search";

const typed = { ...submitSearch.defaults, git: "https://git.example/a.git" };

/** Reload the module: session storage is kept, module state is lost. */
async function reloadModule() {
  vi.resetModules();
  return await import("./draftStorage");
}

beforeEach(() => sessionStorage.clear());
afterEach(() => vi.unstubAllGlobals());

test("unsaved input is restored for the same URL and for an empty URL", async () => {
  (await reloadModule()).saveDraft(typed, "address");
  const { loadDraft } = await reloadModule();
  expect(loadDraft("address", "empty")).toEqual(typed);
  expect(loadDraft("empty", "empty")).toEqual(typed);
  expect(loadDraft("somebody's link", "empty")).toBeNull();
});

test("an mbox survives a reload until it is removed", async () => {
  const mbox = { name: "v2.mbox", text: "From a" };
  expect((await reloadModule()).saveMbox(mbox)).toBe(true);
  expect((await reloadModule()).loadMbox()).toEqual(mbox);
  (await reloadModule()).saveMbox(null);
  expect((await reloadModule()).loadMbox()).toBeNull();
});

test("an mbox that exceeds the storage quota is kept in memory", async () => {
  vi.stubGlobal("sessionStorage", {
    getItem: () => null,
    removeItem: () => undefined,
    setItem: () => {
      throw new DOMException("full", "QuotaExceededError");
    },
  });
  const storage = await reloadModule();
  expect(storage.saveMbox({ name: "huge.mbox", text: "From a" })).toBe(false);
  expect(storage.loadMbox()?.name).toBe("huge.mbox");
});
