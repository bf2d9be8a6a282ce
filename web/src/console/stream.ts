/** Stream the console of a boot into a Log, and resume at the byte offset after an interruption. */
import { markReachable, markUnreachable } from "@/api/connection";
import { errorOf, Unreachable } from "@/api/problem";
import { whileVisible } from "@/api/visibility";
import { Log } from "./log";

const RECONNECT_MS = [1000, 2000, 5000, 10_000];
/** Number of consoles kept in memory, so that switching between boots does not load them again. */
const MAX_CACHED = 4;

export const consoleUrl = (runId: number, bootId: number) => `/api/v1/runs/${runId}/console?boot=${bootId}`;

interface CachedConsole {
  log: Log;
  readers: number;
  stop: (() => void) | null;
}

const cache = new Map<number, CachedConsole>();

/** Open the console of a boot. Callers share one connection, which `close` releases. */
export function openConsole(runId: number, bootId: number): { log: Log; close(): void } {
  const cached = cache.get(bootId) ?? { log: new Log(), readers: 0, stop: null };
  cache.delete(bootId);
  cache.set(bootId, cached);
  cached.readers += 1;
  cached.stop ??= whileVisible(() => {
    const abort = new AbortController();
    const finished = cached.log.state === "ended" || cached.log.state === "failed";
    if (!finished) void followConsole(`${consoleUrl(runId, bootId)}&follow=true`, cached.log, abort.signal);
    return () => abort.abort();
  });
  let closed = false;
  return {
    log: cached.log,
    close() {
      if (closed) return;
      closed = true;
      cached.readers -= 1;
      if (cached.readers > 0) return;
      cached.stop?.();
      cached.stop = null;
      if (cached.log.state === "failed") cache.delete(bootId);
      for (const [id, each] of cache) {
        if (cache.size <= MAX_CACHED) break;
        if (each.readers === 0) cache.delete(id);
      }
    },
  };
}

/** Read until the console has ended. A rejected request ends it with an error; a lost connection is retried. */
export async function followConsole(url: string, log: Log, signal: AbortSignal): Promise<void> {
  for (let failures = 0; !signal.aborted; ) {
    const before = log.bytes;
    try {
      await readOnce(`${url}&offset=${log.bytes}`, log, signal);
      return;
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof Unreachable)) {
        log.setState("failed", error);
        return;
      }
      failures = log.bytes > before ? 1 : failures + 1;
      log.setState("reconnecting");
      markUnreachable();
      await pause(RECONNECT_MS[Math.min(failures, RECONNECT_MS.length) - 1] as number, signal);
    }
  }
}

async function readOnce(url: string, log: Log, signal: AbortSignal): Promise<void> {
  const response = await connect(url, signal);
  if (!response.ok) throw errorOf(response, await response.json().catch(() => undefined));
  markReachable();
  log.setState("live");
  const reader = response.body?.getReader();
  for (;;) {
    const chunk = await reader?.read().catch((error: unknown) => {
      throw new Unreachable(error);
    });
    if (signal.aborted) throw new Unreachable(signal.reason);
    if (!chunk || chunk.done) break;
    log.append(chunk.value);
  }
  log.setState("ended");
}

async function connect(url: string, signal: AbortSignal): Promise<Response> {
  try {
    return await fetch(url, { credentials: "same-origin", cache: "no-store", signal });
  } catch (error) {
    throw new Unreachable(error);
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener(
      "abort",
      () => {
        clearTimeout(timer);
        resolve();
      },
      { once: true },
    );
  });
}
