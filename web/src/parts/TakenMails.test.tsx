import { screen } from "@testing-library/react";
import { expect, test } from "vitest";
import type { TakenThread } from "@/api/types";
import { renderPart } from "@/testing/render";
import { TakenMails } from "./TakenMails";

const mail = (role: "cover" | "patch" | "reply", subject: string, trailers: string[] = []) => ({
  role,
  subject,
  author: "Ada <ada@kernel.example>",
  date: null,
  message_id: `${subject}@x`,
  trailers,
  url: `https://lore.example.org/all/${subject}@x/`,
});

const thread: TakenThread = {
  revision: 2,
  revisions: [1, 2, 3],
  subject: "less",
  author: "Ada <ada@kernel.example>",
  series_key: "less",
  mails: [mail("cover", "zero"), mail("patch", "one\x1b[31m"), mail("reply", "Re", ["Acked-by: Bo <bo@x>"])],
  replies: 4,
  source: null,
  notes: ["v2 was sent 2 times"],
  message_id: "a@b",
  archive: "lore",
  url: "https://lore.example.org/all/zero@x/",
  taken_at: "2026-01-07T09:00:00Z",
  mbox: { sha256: "a".repeat(64), size: 1, kind: "series", name: "thread.mbox" },
};

test("revision, other revisions, notes and every mail with its link are shown", async () => {
  const { container } = await renderPart(<TakenMails of={thread} />);
  expect(container.textContent).toContain("v2 from lore");
  expect(container.textContent).toContain("the archive also has v1, v3");
  expect(container.textContent).toContain("v2 was sent 2 times");
  expect(container.textContent).toContain("Acked-by: Bo <bo@x>");
  expect(container.textContent).toContain("3 more replies between these");
  expect(screen.getByRole("link", { name: "zero" }).getAttribute("href")).toBe(
    "https://lore.example.org/all/zero@x/",
  );
  expect(screen.getByRole("link", { name: "one^[[31m" })).toBeTruthy();
});
