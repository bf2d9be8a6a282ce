/**
 * A submission's events as they happen.
 *
 * The stream says *when* to look, the submission itself says *what* is so: every event is kept in the Query cache under
 * `eventsKey(id)`, and whatever is cached of the submission is fetched again, at most once per `CALM_MS` however many
 * events arrive. Whoever joins late, reconnects or misses something still shows the truth.
 */
import { type QueryClient, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { contactMade, probe, useConnection } from "./connection";
import { whileInSight } from "./sight";
import type { Event, EventKind } from "./types";

const CALM_MS = 500;
const RECONNECT_MS = [1000, 2000, 5000, 10_000];
/** When the stream has told the end and the page has not seen it yet. */
const LAST_LOOK_MS = 5000;
/** Older ones are dropped: the page is about what happens, the steps hold what happened. */
const KEPT = 2000;

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

/** Adds events to those known: each once, in order of `seq`. Returns `known` itself when there is nothing new. */
export function withEvents(known: readonly Event[], arrived: readonly Event[]): readonly Event[] {
  const last = known.at(-1)?.seq ?? 0;
  const fresh = arrived.filter(event => event.seq > last).toSorted((a, b) => a.seq - b.seq);
  const once = fresh.filter((event, at) => event.seq !== fresh[at - 1]?.seq);
  return once.length === 0 ? known : [...known, ...once].slice(-KEPT);
}

interface Following {
  submissionId: number;
  /** Only events with a higher `seq`: the `event_seq` of the answer that the page already shows, 0 for all. */
  after: number;
  client: QueryClient;
  onState(state: StreamState): void;
  onEvents?(events: readonly Event[]): void;
  /** Replaced in tests. */
  open?(url: string): EventSource;
}

/** Follows the stream until it ends or the returned function is called. Reconnects by itself, where it left off. */
export function followEvents({
  submissionId,
  after,
  client,
  onState,
  onEvents,
  open = url => new EventSource(url),
}: Following) {
  let seen = after;
  let failures = 0;
  let source: EventSource | undefined;
  let reconnect: ReturnType<typeof setTimeout> | undefined;
  let flush: ReturnType<typeof setTimeout> | undefined;
  let lastLook: ReturnType<typeof setInterval> | undefined;
  let waiting: Event[] = [];
  let lookedAt = 0;

  function arrived(message: MessageEvent<string>) {
    const event = JSON.parse(message.data) as Event;
    if (event.seq <= seen) return;
    seen = event.seq;
    waiting.push(event);
    flush ??= setTimeout(deliver, Math.max(0, lookedAt + CALM_MS - Date.now()));
  }

  function deliver() {
    flush = undefined;
    lookedAt = Date.now();
    const events = waiting;
    waiting = [];
    client.setQueryData<readonly Event[]>(eventsKey(submissionId), known => withEvents(known ?? [], events));
    onEvents?.(events);
    look();
    if (events.some(event => event.kind === "submission_state")) {
      void client.invalidateQueries({ queryKey: ["submissions"] });
      if (events.some(event => event.data.state === "finished")) end();
    }
  }

  function look() {
    void client.invalidateQueries({ queryKey: ["submission", submissionId] });
  }

  /** Nothing more will be told: an answer that got lost must not leave the page behind for ever. */
  function end() {
    source?.close();
    clearTimeout(reconnect);
    lastLook ??= setInterval(look, LAST_LOOK_MS);
    onState("ended");
  }

  function connect() {
    reconnect = undefined;
    // Also where the stream cannot be had: of one that is over there is only the end to be seen.
    if (failures > 0) look();
    source = open(`/api/v1/submissions/${submissionId}/events?after=${seen}`);
    source.onopen = () => {
      failures = 0;
      contactMade();
      onState("live");
    };
    source.onerror = () => {
      // The browser would retry for ever without saying why; this also tells the page, and asks whether the lab is there.
      source?.close();
      failures += 1;
      onState("reconnecting");
      void probe();
      reconnect = setTimeout(connect, RECONNECT_MS[Math.min(failures, RECONNECT_MS.length) - 1]);
    };
    for (const kind of Object.keys(KINDS))
      source.addEventListener(kind, arrived as (event: globalThis.Event) => void);
  }

  onState("connecting");
  connect();
  return () => {
    source?.close();
    clearTimeout(reconnect);
    clearTimeout(flush);
    clearInterval(lastLook);
  };
}

/**
 * Follows a submission while the component is in sight and `enabled` (not finished). Returns the state of the stream and the
 * events since `after`.
 */
export function useEvents(
  submissionId: number,
  { enabled = true, after = 0 }: { enabled?: boolean; after?: number } = {},
) {
  const client = useQueryClient();
  const [state, setState] = useState<StreamState>("connecting");
  const { lostAt } = useConnection();
  // Where to begin counts once: `after` grows with every look, and the stream must not start again for that.
  const [from] = useState(after);
  useEffect(() => {
    if (!enabled) {
      setState("ended");
      return;
    }
    return whileInSight(() => {
      const known = client.getQueryData<readonly Event[]>(eventsKey(submissionId))?.at(-1)?.seq ?? 0;
      return followEvents({ submissionId, after: Math.max(from, known), client, onState: setState });
    });
  }, [client, submissionId, enabled, from]);
  const { data: events = [] } = useQuery<readonly Event[]>({
    queryKey: eventsKey(submissionId),
    queryFn: () => client.getQueryData<readonly Event[]>(eventsKey(submissionId)) ?? [],
    staleTime: Number.POSITIVE_INFINITY,
  });
  return { state: lostAt !== null && state !== "ended" ? ("reconnecting" as const) : state, events };
}
