import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Log } from "./log";
import { Printable, settled } from "./printable";
import { lineOfRow, type Rows, rowsOfLine } from "./rows";
import { Search } from "./search";
import { follow } from "./stream";

const bytes = (text: string) => new TextEncoder().encode(text);

function logOf(text: string): Log {
  const log = new Log();
  log.append(bytes(text));
  return log;
}

test.each([
  ["\x1b[1;31mred\x1b[0m", "\x1b[1;31mred\x1b[0m", "colours stay"],
  [
    "\x1b[38;2;9;9;9mx\x1b[0;58;5;1my\x1b[38;5;2mz\x1b[4:3mw",
    "xy\x1b[38;5;2mzw",
    "but not those of no theme",
  ],
  ["\x1bc\x1b[?7l\x1b[2Jboot", "boot", "a firmware that clears the screen hides nothing"],
  ["\x1b]0;title\x07text\x1b]8;;http://x\x1b\\link", "textlink", "titles and links are taken out"],
  ["\x1b]0;never ended\nnext", "]0;never ended\nnext", "a string that does not end keeps its line feed"],
  ["a\x0bb\x0cc\u0085d\x07", "abcd", "nothing else feeds a line"],
  ["12%\r13%\b!", "12%\r13%\b!", "what overwrites is left to the terminal"],
])("printable: %j", (given, expected) => {
  const printable = new Printable();
  expect(printable.next(bytes(given)) + printable.end()).toBe(expected);
});

test("a console cut anywhere prints the same", () => {
  const text = "é\x1b[31mx\x1b[0m\r\n\x1b]0;t\x07\u{1f427}\x1b[2K\n";
  const whole = new Printable().next(bytes(text));
  const all = bytes(text);
  for (let cut = 0; cut <= all.length; cut += 1) {
    const printable = new Printable();
    expect(printable.next(all.slice(0, cut)) + printable.next(all.slice(cut)) + printable.end()).toBe(whole);
  }
});

test("an escape that goes on for ever is not held for ever", () => {
  const printable = new Printable();
  expect(printable.next(bytes(`\x1b]${"x".repeat(5000)}`)).length).toBeGreaterThan(4000);
});

test.each([
  ["12%\r13%", "13%"],
  ["abc\r", "abc"],
  ["abc\b\bX", "aXc"],
  ["\x1b[32mok\x1b[0m", "ok"],
])("settled %j is %j", (given, expected) => expect(settled(given)).toBe(expected));

test("lines are numbered from one and known by their bytes, however the text came", () => {
  const log = new Log();
  log.append(bytes("fir"));
  log.append(bytes("st\nsécond\n\nfo"));
  log.append(bytes("urth"));
  expect(log.lineCount).toBe(4);
  expect(log.lines(1, 4)).toEqual(["first", "sécond", "", "fourth"]);
  expect([0, 5, 6, 13, 14, 15, 999].map(byte => log.lineAt(byte))).toEqual([1, 1, 2, 2, 3, 4, 4]);
  expect(log.line(5)).toBeUndefined();
});

test("a last line feed begins no line", () => {
  expect(logOf("a\nb\n").lineCount).toBe(2);
  expect(logOf("").lineCount).toBe(0);
});

test("a search finds lines in any case, goes around the ends, and goes on as the log grows", () => {
  const log = logOf("Oops\nfine\nkernel oops\nhalf an oo");
  const search = new Search(log, "OOPS").advance();
  expect(search.lines).toEqual([1, 3]);
  expect(search.from(null, 1)).toBe(1);
  expect(search.from(1, 1)).toBe(3);
  expect(search.from(3, 1)).toBe(1);
  expect(search.from(1, -1)).toBe(3);
  expect(search.place(3)).toBe(2);
  log.append(bytes("ps\nmore oops"));
  expect(search.advance().lines).toEqual([1, 3, 4, 5]);
  expect(search.advance().lines).toEqual([1, 3, 4, 5]);
});

test("10 MB are read and searched whole", () => {
  const line = "[    1.234567] workqueue: events_unbound hogged CPU for >10000us 4 times\n";
  const many = Math.ceil(10_000_000 / line.length);
  const log = logOf(line.repeat(many));
  expect(log.lineCount).toBe(many);
  expect(new Search(log, "hogged").advance().lines.length).toBe(many);
  expect(log.lineAt(log.bytes - 1)).toBe(many);
});

/** A terminal's buffer: for each row whether it goes on a line. */
const buffer = (wrapped: boolean[]): Rows => ({
  baseY: wrapped.length - 1,
  cursorY: 0,
  getLine: row => (wrapped[row] === undefined ? undefined : { isWrapped: wrapped[row] }),
});

test("rows of a terminal are lines of the log, from whichever end they are counted", () => {
  // Lines 1 to 7, of which 2 takes three rows and 6 two.
  const rows = buffer([false, false, true, true, false, false, false, false, true, false]);
  const lines = [1, 2, 2, 2, 3, 4, 5, 6, 6, 7];
  for (const whole of [true, false]) {
    expect(lines.map((_, row) => lineOfRow(rows, row, 6, whole))).toEqual(lines);
    expect(rowsOfLine(rows, 2, 6, whole)).toEqual({ first: 1, count: 3 });
    expect(rowsOfLine(rows, 6, 6, whole)).toEqual({ first: 7, count: 2 });
    expect(rowsOfLine(rows, 8, 6, whole)).toBeNull();
  }
});

test("a terminal that forgot its oldest rows still knows the newest", () => {
  // Twelve lines were written, the last four are left, the first of them without its beginning.
  const rows = buffer([true, false, false, true, false]);
  expect([0, 1, 2, 3, 4].map(row => lineOfRow(rows, row, 11, false))).toEqual([9, 10, 11, 11, 12]);
  expect(rowsOfLine(rows, 9, 11, false)).toBeNull();
  expect(rowsOfLine(rows, 11, 11, false)).toEqual({ first: 2, count: 2 });
});

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

/** A body that gives its parts and then breaks or ends: a connection that breaks cannot be had otherwise. */
function body(parts: string[], breaks: boolean): ReadableStream<Uint8Array> {
  return new ReadableStream({
    pull(controller) {
      const part = parts.shift();
      if (part !== undefined) controller.enqueue(bytes(part));
      else if (breaks) controller.error(new TypeError("network"));
      else controller.close();
    },
  });
}

test("a console that broke off is resumed at the byte where it did", async () => {
  const asked: string[] = [];
  const answers = [body(["abc\nd"], true), body(["ef\n"], false)];
  vi.stubGlobal("fetch", (url: string) => {
    if (url === "/healthz") return Promise.resolve(new Response("", { status: 200 }));
    asked.push(url);
    return Promise.resolve(new Response(answers.shift(), { status: 200 }));
  });
  const log = new Log();
  const reading = follow("/console?boot=1", log, new AbortController().signal);
  await vi.runAllTimersAsync();
  await reading;
  expect(asked).toEqual(["/console?boot=1&offset=0", "/console?boot=1&offset=5"]);
  expect(log.whole()).toBe("abc\ndef\n");
  expect(log.state).toBe("ended");
});

test("a refusal is no reason to try again", async () => {
  vi.stubGlobal("fetch", () =>
    Promise.resolve(Response.json({ title: "gone", status: 404, detail: "no boot 9" }, { status: 404 })),
  );
  const log = new Log();
  await follow("/console?boot=9", log, new AbortController().signal);
  expect(log.state).toBe("failed");
  expect((log.error as Error).message).toBe("no boot 9");
});
