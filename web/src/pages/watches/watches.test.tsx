import { fireEvent, screen, waitFor } from "@testing-library/react";
import { expect, test, vi } from "vitest";
import { sessionQuery } from "@/api/session";
import type { ListWatch, WatchPreview, WatchView } from "@/api/types";
import { renderPart } from "@/testing/render";
import { WatchActions } from "./WatchActions";
import { WatchForm } from "./WatchForm";

const SPEC: ListWatch = {
  kind: "list",
  name: "wq",
  archive: "lkml",
  tree: "linus",
  owner: "bot",
  only_if_asked: true,
  minutes_a_day: 240,
};
const VIEW: WatchView = {
  spec: SPEC,
  from_file: false,
  enabled_at: null,
  created_at: "2026-01-01T00:00:00Z",
  created_by: "admin",
  changed_at: "2026-01-01T00:00:00Z",
  changed_by: "admin",
  minutes_used: 0,
  waiting_for: "",
  problems: [],
  mailing_list: null,
  repository: null,
};
const PREVIEW: WatchPreview = {
  spec: SPEC,
  days: 7,
  state: "finished",
  outcome: "passed",
  failure: null,
  progress: "",
  read_at: "2026-01-05T12:00:00Z",
  found: {
    mails: 40,
    is_complete: true,
    taken: 1,
    minutes: 14,
    not_taken: { paths: 3 },
    notes: [],
    series: [
      {
        subject: "[PATCH 0/2] workqueue: lock less",
        author: "Ada <ada@example.org>",
        revision: 1,
        patches: 2,
        message_id: "c@x",
        url: "https://lore.example.org/c@x/",
        archived_at: "2026-01-05T12:00:00Z",
        taken: true,
        reason: null,
        detail: "",
        targets: ["xfs-fsync@tiny"],
        minutes: 14,
      },
    ],
  },
};
const LISTS: Record<string, unknown> = {
  "/api/v1/archives": [
    { name: "lore", summary: "", url: "", list: null, searched: true, watchable: false },
    { name: "lkml", summary: "", url: "", list: "lkml@vger.example", searched: true, watchable: true },
  ],
  "/api/v1/trees": [
    { tree: { name: "debian", url: null }, default: true },
    { tree: { name: "linus", url: "https://git.example/linux.git" }, default: false },
  ],
  "/api/v1/plans": [{ plan: { name: "xfs-fsync", checks_health: false } }],
  "/api/v1/device-types": [{ name: "tiny", generated: false }],
};

/** Answer as a lab with the lists above; `answer` has the other requests. Returns what was sent. */
function lab(answer: (method: string, path: string) => [status: number, body: unknown]): unknown[] {
  const sent: unknown[] = [];
  vi.spyOn(globalThis, "fetch").mockImplementation(async input => {
    const request = input as Request;
    const { pathname } = new URL(request.url);
    if (request.method !== "GET")
      sent.push(
        await request
          .clone()
          .json()
          .catch(() => null),
      );
    const [status, body] = pathname in LISTS ? [200, LISTS[pathname]] : answer(request.method, pathname);
    const type = status < 400 ? "application/json" : "application/problem+json";
    return new Response(JSON.stringify(body), { status, headers: { "content-type": type } });
  });
  return sent;
}

const refused = (...errors: { pointer: string; detail: string }[]): [number, unknown] => [
  422,
  { type: "about:blank", title: "Invalid", status: 422, detail: "the request has mistakes", errors },
];
const session = (...scopes: string[]) => ({
  user: { name: "ada", role: "maintainer", scopes },
  csrf_token: "t",
});
const type = (label: string, value: string) =>
  fireEvent.change(screen.getByLabelText(label), { target: { value } });

test("a refused watch shows the server's messages at their fields and keeps what was typed", async () => {
  const sent = lab(() =>
    refused(
      { pointer: "/targets/1", detail: "no plan 'flusch'; did you mean 'flush'?" },
      { pointer: "/owner", detail: "no account 'nobody'" },
    ),
  );
  const { container } = await renderPart(<WatchForm owner="nobody" />);
  await screen.findByText("lkml (lkml@vger.example)");
  await screen.findByText("debian");
  type("Name", "wq");
  type("Files", "kernel/workqueue.c\n");
  type("Targets", "xfs-fsync@tiny\nflusch@tiny");
  fireEvent.submit(container.querySelector("form") as HTMLFormElement);
  expect(await screen.findByText("no plan 'flusch'; did you mean 'flush'?")).toBeTruthy();
  expect(screen.getByText("no account 'nobody'")).toBeTruthy();
  expect(sent).toEqual([
    {
      kind: "list",
      name: "wq",
      summary: "",
      archive: "lkml",
      enabled: false,
      paths: ["kernel/workqueue.c"],
      subjects: [],
      authors: [],
      only_if_asked: true,
      targets: ["xfs-fsync@tiny", "flusch@tiny"],
      what_it_touches: false,
      tree: "debian",
      owner: "nobody",
      commanders: [],
      minutes_a_day: 240,
      quiet_hours: [],
    },
  ]);
  expect((screen.getByLabelText("Targets") as HTMLTextAreaElement).value).toBe("xfs-fsync@tiny\nflusch@tiny");
});

test("menus write a target, quiet hours are added and removed, and the file follows", async () => {
  lab(() => [200, {}]);
  const { container } = await renderPart(<WatchForm owner="bot" />);
  fireEvent.click(await screen.findByRole("button", { name: "Add target" }));
  expect((screen.getByLabelText("Targets") as HTMLTextAreaElement).value).toBe("xfs-fsync@tiny");
  expect(screen.getByRole("button", { name: "Add target" }).hasAttribute("disabled")).toBe(true);
  fireEvent.click(screen.getByRole("button", { name: "Add quiet hours" }));
  expect(container.querySelector("pre")?.textContent).toContain(
    'quiet_hours: [{begins: "22:00", ends: "06:00"}]',
  );
  fireEvent.click(screen.getByRole("button", { name: "Remove the quiet hours from 22:00 to 06:00" }));
  expect(container.querySelector("pre")?.textContent).not.toContain("quiet_hours");
});

test("a watch of a tree offers repositories only, and is not sent with an unreadable parameter", async () => {
  const sent = lab(() => refused({ pointer: "/url", detail: "credentials in a URL" }));
  const { container } = await renderPart(<WatchForm owner="bot" />);
  fireEvent.click(screen.getByLabelText("A tree"));
  await screen.findByText("linus");
  expect(screen.queryByText("debian")).toBeNull();
  type("Name", "next");
  type("Branches", "for-next");
  type("Targets", "xfs-fsync@tiny");
  type("Parameters", "jobs");
  fireEvent.submit(container.querySelector("form") as HTMLFormElement);
  expect(await screen.findByText("Write name=value instead of jobs")).toBeTruthy();
  expect(sent).toEqual([]);
  type("Parameters", "jobs=8");
  fireEvent.submit(container.querySelector("form") as HTMLFormElement);
  expect(await screen.findByText("credentials in a URL")).toBeTruthy();
  expect(sent).toMatchObject([
    { tree: "linus", kind: "tree", parameters: { jobs: 8 }, enabled: false, url: null },
  ]);
});

async function openActions(view: WatchView, scopes: string[]) {
  const made = await renderPart(<WatchActions view={view} />);
  made.client.setQueryData(sessionQuery.queryKey, session(...scopes) as never);
  return made;
}

test("the watch of a list is enabled only after its preview is there", async () => {
  let finished = false;
  lab((method, path) => {
    if (method === "POST") return [200, { ...VIEW, enabled_at: "2026-01-05T12:00:00Z" }];
    if (path.endsWith("/session")) return [200, session("maintain")];
    const running = { ...PREVIEW, state: "running", found: null, progress: "100 of 400 mails" };
    return [200, finished ? PREVIEW : running];
  });
  await openActions(VIEW, ["maintain"]);
  fireEvent.click(await screen.findByRole("button", { name: "Enable" }));
  expect(await screen.findByText("A worker reads the list: 100 of 400 mails")).toBeTruthy();
  const confirm = () => screen.getAllByRole("button", { name: "Enable", hidden: true }).at(-1) as HTMLElement;
  expect(confirm().hasAttribute("disabled")).toBe(true);
  finished = true;
  expect(await screen.findByText("1 series, 14 minutes of devices")).toBeTruthy();
  expect(screen.getByText("[PATCH 0/2] workqueue: lock less")).toBeTruthy();
  await waitFor(() => expect(confirm().hasAttribute("disabled")).toBe(false));
});

test("if the list cannot be read, one knows that nobody has seen a preview", async () => {
  const failure = { kind: "infrastructure", summary: "the archive answered 503" };
  lab((_, path) =>
    path.endsWith("/session")
      ? [200, session("maintain")]
      : [200, { ...PREVIEW, outcome: "failed", found: null, failure }],
  );
  await openActions(VIEW, ["maintain"]);
  fireEvent.click(await screen.findByRole("button", { name: "Enable" }));
  expect(await screen.findByText(/the archive answered 503/)).toBeTruthy();
  expect(screen.getByRole("button", { name: "Enable without a preview", hidden: true })).toBeTruthy();
});

test("the watch of a tree is enabled without a preview, and looked at on request", async () => {
  const tree: WatchView = {
    ...VIEW,
    spec: { kind: "tree", name: "next", tree: "linus", branches: ["for-next"], targets: [], owner: "bot" },
    repository: { url: "", looked_at: null, next_look_at: null, problem: "", heads: {} },
  };
  const asked: string[] = [];
  lab((method, path) => {
    if (method === "POST") asked.push(path);
    return [200, path.endsWith("/session") ? session("maintain") : tree];
  });
  await openActions(tree, ["maintain"]);
  fireEvent.click(await screen.findByRole("button", { name: "Enable" }));
  await waitFor(() => expect(asked).toEqual(["/api/v1/watches/next/enable"]));
  await openActions({ ...tree, enabled_at: "2026-01-05T12:00:00Z" }, ["maintain"]);
  fireEvent.click(await screen.findByRole("button", { name: "Look now" }));
  await waitFor(() => expect(asked).toContain("/api/v1/watches/next/check"));
});

test.each([
  [["submit"], VIEW, []],
  [["maintain"], VIEW, ["Enable"]],
  [["maintain", "admin"], { ...VIEW, from_file: true }, ["Enable"]],
  [["maintain", "admin"], VIEW, ["Enable", "Change", "Remove"]],
])("scopes %s decide what is offered", async (scopes, view, offered) => {
  lab(() => [200, session(...scopes)]);
  const { container } = await openActions(view, scopes);
  const shown = () => [...container.querySelectorAll("button, a")].map(each => each.textContent);
  await waitFor(() => expect(shown()).toEqual(offered));
});
