import { act, screen } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import { OfflineBanner } from "@/app/OfflineBanner";
import { renderPart } from "@/testing/render";
import { contactLost, contactMade, whenRegained } from "./connection";

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
  act(contactMade);
});

test("lost contact is said, asked for at growing intervals, and tells when it is back", async () => {
  await renderPart(<OfflineBanner />);
  vi.useFakeTimers();
  const ask = vi.fn(() => Promise.reject(new TypeError("Failed to fetch")) as Promise<Response>);
  vi.stubGlobal("fetch", ask);
  const back = vi.fn();
  const forget = whenRegained(back);

  act(contactLost);
  expect(screen.getByText("No contact with the lab")).toBeTruthy();
  await act(() => vi.advanceTimersByTimeAsync(60_000));
  const often = ask.mock.calls.length;
  expect(often).toBeGreaterThan(3);
  expect(often).toBeLessThan(12);
  expect(back).not.toHaveBeenCalled();

  ask.mockImplementation(() => Promise.resolve(new Response("{}")));
  await act(() => vi.advanceTimersByTimeAsync(30_000));
  expect(back).toHaveBeenCalledOnce();
  expect(screen.queryByText("No contact with the lab")).toBeNull();
  await act(() => vi.advanceTimersByTimeAsync(120_000));
  expect(ask.mock.calls.length).toBe(often + 1);
  forget();
});
