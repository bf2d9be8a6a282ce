/**
 * Live events of a submission.
 *
 * Events only trigger a refetch; the page always shows what the REST API returns. Every event is stored in the Query
 * cache under `eventsKey(id)`, and all cached queries of the submission are invalidated, at most once per
 * `REFETCH_INTERVAL_MS` however many events arrive. So a page that joins late, reconnects or misses an event is
 * correct.
 */
import { type QueryClient, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { markReachable, probe, useConnection } from "./connection";
import type { Event, EventKind } from "./types";
import { whileVisible } from "./visibility";

const REFETCH_INTERVAL_MS = 500;
const RECONNECT_MS = [1000, 2000, 5000, 10_000];
/** Refetch interval after the stream has ended, until the page has received the finished submission. */
const FINAL_REFETCH_MS = 5000;
/** Older events are dropped: the submission's steps hold the history. */
const MAX_EVENTS = 2000;

const KINDS: Record<EventKind, true> = {
  submission_state: true,
  apply_state: true,
  build_state: true,
  build_progress: true,
  run_state: true,
  run_progress: true,
  boot_state: true,
  block_finished: true,
  block_discarded: true,
  samples: true,
  unsupported: true,
  finding: true,
  attempt_failed: true,
  report_ready: true,
};

export type StreamState = "connecting" | "live" | "reconnecting" | "ended";

export const eventsKey = (submissionId: number) => ["submission-events", submissionId] as const;

/** Add new events to the known ones: no duplicates, ordered by `seq`. Returns `known` itself if nothing is new. */
export function mergeEvents(known: readonly Event[], arrived: readonly Event[]): readonly Event[] {
  const last = known.at(-1)?.seq ?? 0;
  const fresh = arrived.filter(event => event.seq > last).toSorted((a, b) => a.seq - b.seq);
  const once = fresh.filter((event, at) => event.seq !== fresh[at - 1]?.seq);
  return once.length === 0 ? known : [...known, ...once].slice(-MAX_EVENTS);
}

interface FollowOptions {
  submissionId: number;
  /** Only events with a higher `seq`: the `event_seq` of the response that the page already shows, or 0 for all. */
  after: number;
  client: QueryClient;
  onState(state: StreamState): void;
  onEvents?(events: readonly Event[]): void;
  /** Replaced in tests. */
  open?(url: string): EventSource;
}

/** Follow the stream until it ends or the returned function is called. Reconnects from the last event received. */
export function followEvents({
  submissionId,
  after,
  client,
  onState,
  onEvents,
  open = url => new EventSource(url),
}: FollowOptions) {
  let lastSeq = after;
  let failures = 0;
  let source: EventSource | undefined;
  let reconnectTimer: ReturnType<typeof setTimeout> | undefined;
  let flushTimer: ReturnType<typeof setTimeout> | undefined;
  let finalRefetch: ReturnType<typeof setInterval> | undefined;
  let pending: Event[] = [];
  let lastRefetchAt = 0;

  function onMessage(message: MessageEvent<string>) {
    const event = JSON.parse(message.data) as Event;
    if (event.seq <= lastSeq) return;
    lastSeq = event.seq;
    pending.push(event);
    flushTimer ??= setTimeout(deliver, Math.max(0, lastRefetchAt + REFETCH_INTERVAL_MS - Date.now()));
  }

  function deliver() {
    flushTimer = undefined;
    lastRefetchAt = Date.now();
    const events = pending;
    pending = [];
    client.setQueryData<readonly Event[]>(eventsKey(submissionId), known => mergeEvents(known ?? [], events));
    onEvents?.(events);
    refetch();
    if (events.some(event => event.kind === "submission_state")) {
      void client.invalidateQueries({ queryKey: ["submissions"] });
      if (events.some(event => event.data.state === "finished")) end();
    }
  }

  function refetch() {
    void client.invalidateQueries({ queryKey: ["submission", submissionId] });
  }

  /** Close the stream. Refetching goes on, so that one lost response cannot leave the page out of date. */
  function end() {
    source?.close();
    clearTimeout(reconnectTimer);
    finalRefetch ??= setInterval(refetch, FINAL_REFETCH_MS);
    onState("ended");
  }

  function connect() {
    reconnectTimer = undefined;
    // If the stream cannot be opened, the submission may have finished: refetch it.
    if (failures > 0) refetch();
    source = open(`/api/v1/submissions/${submissionId}/events?after=${lastSeq}`);
    source.onopen = () => {
      failures = 0;
      markReachable();
      onState("live");
    };
    source.onerror = () => {
      // EventSource would retry forever without a reason: reconnect here, update the page's state and probe the lab.
      source?.close();
      failures += 1;
      onState("reconnecting");
      void probe();
      reconnectTimer = setTimeout(connect, RECONNECT_MS[Math.min(failures, RECONNECT_MS.length) - 1]);
    };
    for (const kind of Object.keys(KINDS))
      source.addEventListener(kind, onMessage as (event: globalThis.Event) => void);
  }

  onState("connecting");
  connect();
  return () => {
    source?.close();
    clearTimeout(reconnectTimer);
    clearTimeout(flushTimer);
    clearInterval(finalRefetch);
  };
}

/**
 * Follow a submission while the page is visible and `enabled` (the submission is not finished). Returns the state of
 * the stream and the events since `after`.
 */
export function useEvents(
  submissionId: number,
  { enabled = true, after = 0 }: { enabled?: boolean; after?: number } = {},
) {
  const client = useQueryClient();
  const [state, setState] = useState<StreamState>("connecting");
  const { unreachableSince } = useConnection();
  // Only the first `after` counts: it grows with every refetch, which must not restart the stream.
  const [from] = useState(after);
  useEffect(() => {
    if (!enabled) {
      setState("ended");
      return;
    }
    return whileVisible(() => {
      const known = client.getQueryData<readonly Event[]>(eventsKey(submissionId))?.at(-1)?.seq ?? 0;
      return followEvents({ submissionId, after: Math.max(from, known), client, onState: setState });
    });
  }, [client, submissionId, enabled, from]);
  const { data: events = [] } = useQuery<readonly Event[]>({
    queryKey: eventsKey(submissionId),
    queryFn: () => client.getQueryData<readonly Event[]>(eventsKey(submissionId)) ?? [],
    staleTime: Number.POSITIVE_INFINITY,
  });
  return {
    state: unreachableSince !== null && state !== "ended" ? ("reconnecting" as const) : state,
    events,
  };
}
