import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ConsoleDecoder, finalText } from "./decoder";
import { Log } from "./log";
import { Search } from "./search";
import { followConsole } from "./stream";

const bytes = (text: string) => new TextEncoder().encode(text);

function logOf(text: string): Log {
  const log = new Log();
  log.append(bytes(text));
  return log;
}

test.each([
  ["\x1b[1;31mred\x1b[0m\x1b[38;2;9;9;9mx\x1b[4:3mw", "redxw", "colours are removed"],
  ["\x1bc\x1b[?7l\x1b[2Jboot", "boot", "clearing the screen removes no text"],
  ["\x1b]0;title\x07text\x1b]8;;http://x\x1b\\link", "textlink", "titles and links are removed"],
  ["\x1b]0;never ended\nnext", "]0;never ended\nnext", "a line feed ends an unterminated string"],
  ["a\x0bb\x0cc\u0085d\x07", "abcd", "other controls start no line"],
  ["12%\r13%\b!", "12%\r13%\b!", "carriage returns and backspaces are kept"],
])("decoding %j", (given, expected) => {
  const decoder = new ConsoleDecoder();
  expect(decoder.decode(bytes(given)) + decoder.finish()).toBe(expected);
});

test("a console split at any byte decodes to the same text", () => {
  const text = "é\x1b[31mx\x1b[0m\r\n\x1b]0;t\x07\u{1f427}\x1b[2K\n";
  const whole = new ConsoleDecoder().decode(bytes(text));
  const all = bytes(text);
  for (let cut = 0; cut <= all.length; cut += 1) {
    const decoder = new ConsoleDecoder();
    expect(decoder.decode(all.slice(0, cut)) + decoder.decode(all.slice(cut)) + decoder.finish()).toBe(whole);
  }
});

test("an endless escape sequence is not buffered without limit", () => {
  const decoder = new ConsoleDecoder();
  expect(decoder.decode(bytes(`\x1b]${"x".repeat(5000)}`)).length).toBeGreaterThan(4000);
});

test.each([
  ["12%\r13%", "13%"],
  ["abc\r", "abc"],
  ["abc\b\bX", "aXc"],
])("the final text of %j is %j", (given, expected) => expect(finalText(given)).toBe(expected));

test("lines are numbered from 1 and found by byte offset", () => {
  const log = new Log();
  log.append(bytes("fir"));
  log.append(bytes("st\nsécond\n\nfo"));
  log.append(bytes("urth"));
  expect(log.lineCount).toBe(4);
  expect(log.lines(1, 4)).toEqual(["first", "sécond", "", "fourth"]);
  expect([0, 5, 6, 13, 14, 15, 999].map(byte => log.lineAt(byte))).toEqual([1, 1, 2, 2, 3, 4, 4]);
  expect(log.line(5)).toBeUndefined();
});

test("a final line feed starts no line", () => {
  expect(logOf("a\nb\n").lineCount).toBe(2);
  expect(logOf("").lineCount).toBe(0);
});

test("a search ignores case, wraps around and continues as the log grows", () => {
  const log = logOf("Oops\nfine\nkernel oops\nhalf an oo");
  const search = new Search(log, "OOPS").advance();
  expect(search.lines).toEqual([1, 3]);
  expect(search.next(null, 1)).toBe(1);
  expect(search.next(1, 1)).toBe(3);
  expect(search.next(3, 1)).toBe(1);
  expect(search.next(1, -1)).toBe(3);
  expect(search.position(3)).toBe(2);
  log.append(bytes("ps\nmore oops"));
  expect(search.advance().lines).toEqual([1, 3, 4, 5]);
  expect(search.advance().lines).toEqual([1, 3, 4, 5]);
});

test("a log of 10 MB is read and searched completely", () => {
  const line = "[    1.234567] workqueue: events_unbound hogged CPU for >10000us 4 times\n";
  const many = Math.ceil(10_000_000 / line.length);
  const log = logOf(line.repeat(many));
  expect(log.lineCount).toBe(many);
  expect(new Search(log, "hogged").advance().lines.length).toBe(many);
  expect(log.lineAt(log.bytes - 1)).toBe(many);
});

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

/** A response body that sends its parts and then breaks or ends. */
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

test("an interrupted console is resumed at its byte offset", async () => {
  const requested: string[] = [];
  const answers = [body(["abc\nd"], true), body(["ef\n"], false)];
  vi.stubGlobal("fetch", (url: string) => {
    if (url === "/api/v1/session") return Promise.resolve(new Response("", { status: 200 }));
    requested.push(url);
    return Promise.resolve(new Response(answers.shift(), { status: 200 }));
  });
  const log = new Log();
  const reading = followConsole("/console?boot=1", log, new AbortController().signal);
  await vi.runAllTimersAsync();
  await reading;
  expect(requested).toEqual(["/console?boot=1&offset=0", "/console?boot=1&offset=5"]);
  expect(log.plainText()).toBe("abc\ndef\n");
  expect(log.state).toBe("ended");
});

test("a rejected request is not retried", async () => {
  vi.stubGlobal("fetch", () =>
    Promise.resolve(Response.json({ title: "gone", status: 404, detail: "no boot 9" }, { status: 404 })),
  );
  const log = new Log();
  await followConsole("/console?boot=9", log, new AbortController().signal);
  expect(log.state).toBe("failed");
  expect((log.error as Error).message).toBe("no boot 9");
});
