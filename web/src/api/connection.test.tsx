import { act, screen } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import { OfflineBanner } from "@/app/OfflineBanner";
import { renderPart } from "@/testing/render";
import { markReachable, markUnreachable, onReconnect } from "./connection";

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
  act(markReachable);
});

test("a lost connection shows a banner, is probed, and notifies when restored", async () => {
  await renderPart(<OfflineBanner />);
  vi.useFakeTimers();
  const fetchStub = vi.fn(() => Promise.reject(new TypeError("Failed to fetch")) as Promise<Response>);
  vi.stubGlobal("fetch", fetchStub);
  const onRestored = vi.fn();
  const unsubscribe = onReconnect(onRestored);

  act(markUnreachable);
  expect(screen.getByText("Connection lost")).toBeTruthy();
  await act(() => vi.advanceTimersByTimeAsync(60_000));
  const probes = fetchStub.mock.calls.length;
  expect(probes).toBeGreaterThan(3);
  expect(probes).toBeLessThan(12);
  expect(onRestored).not.toHaveBeenCalled();

  fetchStub.mockImplementation(() => Promise.resolve(new Response("{}")));
  await act(() => vi.advanceTimersByTimeAsync(30_000));
  expect(onRestored).toHaveBeenCalledOnce();
  expect(screen.queryByText("Connection lost")).toBeNull();
  await act(() => vi.advanceTimersByTimeAsync(120_000));
  expect(fetchStub.mock.calls.length).toBe(probes + 1);
  unsubscribe();
});
