/** A boot's console into a Log: byte for byte, live while the boot goes on, resumed where it broke off. */
import { contactLost, contactMade } from "@/api/connection";
import { errorOf, Unreachable } from "@/api/problem";
import { whileInSight } from "@/api/sight";
import { Log } from "./log";

const RECONNECT_MS = [1000, 2000, 5000, 10_000];
/** Consoles read last, so that going back and forth between two boots costs nothing. */
const KEPT = 4;

export const consoleUrl = (runId: number, bootId: number) => `/api/v1/runs/${runId}/console?boot=${bootId}`;

interface Reading {
  log: Log;
  readers: number;
  stop: (() => void) | null;
}

const readings = new Map<number, Reading>();

/** The console of a boot. Every caller shares one connection; the returned function lets go of it. */
export function openConsole(runId: number, bootId: number): { log: Log; close(): void } {
  const reading = readings.get(bootId) ?? { log: new Log(), readers: 0, stop: null };
  readings.delete(bootId);
  readings.set(bootId, reading);
  reading.readers += 1;
  reading.stop ??= whileInSight(() => {
    const abort = new AbortController();
    const over = reading.log.state === "ended" || reading.log.state === "failed";
    if (!over) void follow(`${consoleUrl(runId, bootId)}&follow=true`, reading.log, abort.signal);
    return () => abort.abort();
  });
  let closed = false;
  return {
    log: reading.log,
    close() {
      if (closed) return;
      closed = true;
      reading.readers -= 1;
      if (reading.readers > 0) return;
      reading.stop?.();
      reading.stop = null;
      if (reading.log.state === "failed") readings.delete(bootId);
      for (const [id, each] of readings) {
        if (readings.size <= KEPT) break;
        if (each.readers === 0) readings.delete(id);
      }
    },
  };
}

/** Reads until the console has ended. A refusal ends it too; a lost connection does not. */
export async function follow(url: string, log: Log, signal: AbortSignal): Promise<void> {
  for (let failures = 0; !signal.aborted; ) {
    const before = log.bytes;
    try {
      await readOnce(`${url}&offset=${log.bytes}`, log, signal);
      return;
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof Unreachable)) {
        log.become("failed", error);
        return;
      }
      failures = log.bytes > before ? 1 : failures + 1;
      log.become("reconnecting");
      contactLost();
      await pause(RECONNECT_MS[Math.min(failures, RECONNECT_MS.length) - 1] as number, signal);
    }
  }
}

async function readOnce(url: string, log: Log, signal: AbortSignal): Promise<void> {
  const response = await connect(url, signal);
  if (!response.ok) throw errorOf(response, await response.json().catch(() => undefined));
  contactMade();
  log.become("live");
  const reader = response.body?.getReader();
  for (;;) {
    const part = await reader?.read().catch((error: unknown) => {
      throw new Unreachable(error);
    });
    if (signal.aborted) throw new Unreachable(signal.reason);
    if (!part || part.done) break;
    log.append(part.value);
  }
  log.become("ended");
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
