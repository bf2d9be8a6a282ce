import { QueryClient } from "@tanstack/react-query";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { eventsKey, followEvents, mergeEvents, type StreamState } from "./events";
import type { Event } from "./types";

/** A fake EventSource that the test drives, so that it can break the connection. */
class FakeEventSource extends EventTarget {
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
  emit(event: Event) {
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

let streams: FakeEventSource[];
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
      const stream = new FakeEventSource(url);
      streams.push(stream);
      return stream as unknown as EventSource;
    },
  });
}

test("events are kept without duplicates, in order", () => {
  const known = [event(1), event(2)];
  expect(mergeEvents(known, [event(4), event(3), event(3), event(2)]).map(each => each.seq)).toEqual([
    1, 2, 3, 4,
  ]);
  expect(mergeEvents(known, [event(2)])).toBe(known);
});

test("many events cause one refetch", async () => {
  const invalidate = vi.spyOn(client, "invalidateQueries");
  follow();
  streams[0]?.onopen?.();
  for (let seq = 1; seq <= 20; seq += 1) streams[0]?.emit(event(seq));
  await vi.advanceTimersByTimeAsync(500);
  expect(invalidate).toHaveBeenCalledTimes(1);
  expect(invalidate).toHaveBeenCalledWith({ queryKey: ["submission", 7] });
  expect(client.getQueryData<Event[]>(eventsKey(7))).toHaveLength(20);
});

test("a broken stream is resumed after its last event, and its state is reported", async () => {
  follow(3);
  expect(streams[0]?.url).toBe("/api/v1/submissions/7/events?after=3");
  streams[0]?.onopen?.();
  streams[0]?.emit(event(4));
  streams[0]?.onerror?.();
  expect(streams[0]?.closed).toBe(true);
  await vi.advanceTimersByTimeAsync(1000);
  expect(streams[1]?.url).toBe("/api/v1/submissions/7/events?after=4");
  streams[1]?.onopen?.();
  streams[1]?.emit(event(4));
  streams[1]?.emit(event(5));
  await vi.advanceTimersByTimeAsync(1000);
  expect(client.getQueryData<Event[]>(eventsKey(7))?.map(each => each.seq)).toEqual([4, 5]);
  expect(states).toEqual(["connecting", "live", "reconnecting", "live"]);
});

test("the stream ends with the submission", async () => {
  follow();
  streams[0]?.onopen?.();
  streams[0]?.emit(event(1, "submission_state", { state: "finished" }));
  await vi.advanceTimersByTimeAsync(60_000);
  expect(states.at(-1)).toBe("ended");
  expect(streams).toHaveLength(1);
  expect(streams[0]?.closed).toBe(true);
});

test("after the end of the stream the submission is refetched until stopped", async () => {
  const invalidate = vi.spyOn(client, "invalidateQueries");
  const stop = follow();
  streams[0]?.emit(event(1, "submission_state", { state: "finished" }));
  await vi.advanceTimersByTimeAsync(1000);
  const before = invalidate.mock.calls.length;
  await vi.advanceTimersByTimeAsync(10_000);
  expect(invalidate.mock.calls.length).toBe(before + 2);
  stop();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(invalidate.mock.calls.length).toBe(before + 2);
});

test("a stream that cannot be reopened causes a refetch", async () => {
  const invalidate = vi.spyOn(client, "invalidateQueries");
  follow(9);
  streams[0]?.onerror?.();
  await vi.advanceTimersByTimeAsync(1000);
  expect(invalidate).toHaveBeenCalledWith({ queryKey: ["submission", 7] });
});

test("stopping cancels the pending reconnect", async () => {
  const stop = follow();
  streams[0]?.onerror?.();
  stop();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(streams).toHaveLength(1);
});
