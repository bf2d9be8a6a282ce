import { screen } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import type { BranchInspection, SubmissionRequest, Touches } from "@/api/types";
import { renderPart } from "@/testing/render";
import { requestOf } from "../draft/draft";
import { submitSearch } from "../search";
import { ProposedTargets } from "../touches/ProposedTargets";
import { GitFields } from "./GitFields";

const DRAFT = { ...submitSearch.defaults, git: "https://git.example/linux.git", ref: "topic" };
const REQUEST: SubmissionRequest = requestOf(DRAFT, null, "linux");
const RUNNING: BranchInspection = {
  url: DRAFT.git,
  ref: "topic",
  base: null,
  tree: "linux",
  state: "running",
  progress: "fetching topic\x1b[31m",
  outcome: null,
  failure: null,
  base_commit: null,
  commit: null,
  inspection: null,
  looked_at: null,
};
const READ: BranchInspection = {
  ...RUNNING,
  state: "finished",
  progress: "",
  outcome: "passed",
  base_commit: "a".repeat(40),
  commit: "b".repeat(40),
  looked_at: "2026-01-05T12:00:00Z",
  inspection: {
    subject: "workqueue: less",
    version: 1,
    series_key: "workqueue: less",
    change_id: null,
    authors: ["Ada <ada@x>"],
    cover: null,
    patches: [
      {
        position: 1,
        subject: "workqueue: less",
        author: "Ada <ada@x>",
        date: null,
        message_id: null,
        message: "",
        files: [],
        insertions: 1,
        deletions: 1,
      },
    ],
    base_commit: "a".repeat(40),
    files: 1,
    insertions: 1,
    deletions: 1,
    mails: 1,
    problems: [],
    usable: true,
  },
};
const TOUCHES: Touches = {
  proposals: [
    {
      target: { plan: "fsync", device_type: "xeon", parameters: {} },
      devices: [],
      also_on: [],
      asks: ["Does a flush take fewer locks?"],
      because: [{ path: "kernel/workqueue.c", symbols: [] }],
      by_symbol: false,
      quote: null,
    },
  ],
  left_out: [],
  uncovered: [],
  files: 1,
  looked_at: 1,
  device_s: null,
  build_s: null,
};

/** Answer as a lab whose readings are `readings`, the last one from then on. Returns the queries of the readings. */
function lab(readings: BranchInspection[]): string[] {
  const asked: string[] = [];
  vi.spyOn(globalThis, "fetch").mockImplementation(async input => {
    const { pathname, search } = new URL((input as Request).url);
    const answers: Record<string, () => unknown> = {
      "/api/v1/session": () => ({ user: { name: "ada", role: "user", scopes: ["submit"] }, csrf_token: "t" }),
      "/api/v1/git/branches": () => ({ state: "finished", branches: [], head: null, truncated: false }),
      "/api/v1/git/branches/inspection": () => {
        asked.push(search);
        return readings.length > 1 ? readings.shift() : readings[0];
      },
      "/api/v1/touches": () => TOUCHES,
    };
    const body = JSON.stringify(answers[pathname]?.());
    return new Response(body, { status: 200, headers: { "content-type": "application/json" } });
  });
  return asked;
}

const parts = (
  <>
    <GitFields draft={DRAFT} change={() => {}} request={REQUEST} />
    <ProposedTargets request={REQUEST} mboxKey="" types={[]} draft={DRAFT} change={() => {}} />
  </>
);

afterEach(() => {
  vi.restoreAllMocks();
});

test("a branch is read, then its patches and the proposals for them are shown", async () => {
  const asked = lab([RUNNING, RUNNING, READ]);
  await renderPart(parts);
  expect(await screen.findByText("Reading the branch… fetching topic^[[31m")).toBeTruthy();
  expect(screen.getByText(/You need not wait for the proposals/)).toBeTruthy();
  expect(await screen.findByRole("checkbox", { name: "Does a flush take fewer locks?" })).toBeTruthy();
  expect(screen.getByText("1 patch on top of aaaaaaaaaaaa; the last commit is bbbbbbbbbbbb.")).toBeTruthy();
  expect(screen.getByRole("region", { name: "Contents of the branch" })).toBeTruthy();
  expect(asked[0]).toBe("?url=https%3A%2F%2Fgit.example%2Flinux.git&ref=topic&tree=linux");
});

test("a branch that cannot be read says why beside its fields", async () => {
  const failure = {
    kind: "user" as const,
    summary: "cannot fetch topic",
    excerpt: "",
    advice: "Check it.",
    defect: "",
    of_variant: false,
    stack: [],
  };
  lab([{ ...READ, outcome: "failed", inspection: null, failure }]);
  await renderPart(parts);
  expect(await screen.findByText("The branch could not be read: cannot fetch topic. Check it.")).toBeTruthy();
  expect(screen.getByText(/so it proposes no targets\. The branch's fields show the reason/)).toBeTruthy();
});
