import { expect, test } from "vitest";
import type { ArchiveView } from "@/api/types";
import { addressesOf, archivePage, changesOf, MAIL_COLUMNS, sizeOf } from "./mail";

test("lines, columns and long lines are counted as a reader sees them", () => {
  expect(sizeOf("")).toEqual({ lines: 0, columns: 0, long: [] });
  expect(sizeOf("one\ntwo\n")).toEqual({ lines: 2, columns: 3, long: [] });
  expect(sizeOf("one\r\n\r\n")).toEqual({ lines: 2, columns: 3, long: [] });
  expect(sizeOf("a\tb").columns).toBe(9);
  expect(sizeOf("Änderung 🙂").columns).toBe(10);
  const long = "x".repeat(MAIL_COLUMNS + 1);
  expect(sizeOf(`ok\n${long}\n${"y".repeat(MAIL_COLUMNS)}\n${long}\n`).long).toEqual([2, 4]);
});

test("addresses are one a line; a comma belongs to a name", () => {
  expect(addressesOf(' Ada <ada@x>,\n\n"Bo, Jr" <bo@x>\n')).toEqual(["Ada <ada@x>", '"Bo, Jr" <bo@x>']);
});

test("only what was changed is sent", () => {
  const mail = {
    message_id: "m@lab",
    in_reply_to: null,
    references: [],
    sender: "lab@x",
    to: ["ada@x"],
    cc: ["lkml@x"],
    subject: "Re: x",
    date: "2026-01-01T00:00:00Z",
    body: "text\n",
  };
  const { to, cc, subject, body } = mail;
  expect(changesOf(mail, { to, cc, subject, body })).toEqual({});
  expect(changesOf(mail, { to, cc: [], subject, body: "other\n" })).toEqual({ cc: [], body: "other\n" });
});

test("a message is linked in the archive of a list among the recipients, else in that of all lists", () => {
  const archive = (name: string, list: string | null): ArchiveView => ({
    name,
    summary: name,
    url: `https://${name}.example/{message_id}/`,
    list,
    searched: false,
    watchable: list !== null,
  });
  const archives = [archive("wq", "wq@vger.example"), archive("all", null)];
  expect(archivePage(archives, "a+b@x", ["WQ list <wq@vger.example>"])).toBe("https://wq.example/a+b@x/");
  expect(archivePage(archives, "a/b?@x", ["ada@x"])).toBe("https://all.example/a%2Fb%3F@x/");
  expect(archivePage([], "a@x", [])).toBeNull();
});
