import { QueryClient } from "@tanstack/react-query";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { eventsKey, followEvents, type StreamState, withEvents } from "./events";
import type { Event } from "./types";

/** The browser's EventSource, driven by the test: a connection that breaks cannot be had otherwise. */
class Stream extends EventTarget {
  onopen: (() => void) | null = null;
  onerror: (() => void) | null = null;
  closed = false;
  readonly url: string;
  constructor(url: string) {
    super();
    this.url = url;
  }
  close() {
    this.closed = true;
  }
  say(event: Event) {
    this.dispatchEvent(new MessageEvent(event.kind, { data: JSON.stringify(event) }));
  }
}

const event = (seq: number, kind: Event["kind"] = "boot_state", data: Event["data"] = {}): Event => ({
  seq,
  kind,
  data,
  at: "2026-11-21T18:00:00Z",
  build_id: null,
  run_id: null,
  boot_id: null,
});

let streams: Stream[];
let states: StreamState[];
let client: QueryClient;

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal("fetch", () => Promise.resolve(new Response("{}", { status: 200 })));
  streams = [];
  states = [];
  client = new QueryClient();
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

function follow(after = 0) {
  return followEvents({
    submissionId: 7,
    after,
    client,
    onState: state => states.push(state),
    open: url => {
      const stream = new Stream(url);
      streams.push(stream);
      return stream as unknown as EventSource;
    },
  });
}

test("events are kept once each, in order", () => {
  const known = [event(1), event(2)];
  expect(withEvents(known, [event(4), event(3), event(3), event(2)]).map(each => each.seq)).toEqual([
    1, 2, 3, 4,
  ]);
  expect(withEvents(known, [event(2)])).toBe(known);
});

test("many events lead to one look", async () => {
  const look = vi.spyOn(client, "invalidateQueries");
  follow();
  streams[0]?.onopen?.();
  for (let seq = 1; seq <= 20; seq += 1) streams[0]?.say(event(seq));
  await vi.advanceTimersByTimeAsync(500);
  expect(look).toHaveBeenCalledTimes(1);
  expect(look).toHaveBeenCalledWith({ queryKey: ["submission", 7] });
  expect(client.getQueryData<Event[]>(eventsKey(7))).toHaveLength(20);
});

test("a stream that breaks is taken up where it was, and the page is told", async () => {
  follow(3);
  expect(streams[0]?.url).toBe("/api/v1/submissions/7/events?after=3");
  streams[0]?.onopen?.();
  streams[0]?.say(event(4));
  streams[0]?.onerror?.();
  expect(streams[0]?.closed).toBe(true);
  await vi.advanceTimersByTimeAsync(1000);
  expect(streams[1]?.url).toBe("/api/v1/submissions/7/events?after=4");
  streams[1]?.onopen?.();
  streams[1]?.say(event(4));
  streams[1]?.say(event(5));
  await vi.advanceTimersByTimeAsync(1000);
  expect(client.getQueryData<Event[]>(eventsKey(7))?.map(each => each.seq)).toEqual([4, 5]);
  expect(states).toEqual(["connecting", "live", "reconnecting", "live"]);
});

test("it ends with the submission", async () => {
  follow();
  streams[0]?.onopen?.();
  streams[0]?.say(event(1, "submission_state", { state: "finished" }));
  await vi.advanceTimersByTimeAsync(60_000);
  expect(states.at(-1)).toBe("ended");
  expect(streams).toHaveLength(1);
  expect(streams[0]?.closed).toBe(true);
});

test("until the page has seen the end, it looks again", async () => {
  const look = vi.spyOn(client, "invalidateQueries");
  const stop = follow();
  streams[0]?.say(event(1, "submission_state", { state: "finished" }));
  await vi.advanceTimersByTimeAsync(1000);
  const before = look.mock.calls.length;
  await vi.advanceTimersByTimeAsync(10_000);
  expect(look.mock.calls.length).toBe(before + 2);
  stop();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(look.mock.calls.length).toBe(before + 2);
});

test("a stream that ended while it was not followed leaves the end to be seen", async () => {
  const look = vi.spyOn(client, "invalidateQueries");
  follow(9);
  streams[0]?.onerror?.();
  await vi.advanceTimersByTimeAsync(1000);
  expect(look).toHaveBeenCalledWith({ queryKey: ["submission", 7] });
});

test("whoever stops following leaves nothing behind", async () => {
  const stop = follow();
  streams[0]?.onerror?.();
  stop();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(streams).toHaveLength(1);
});
