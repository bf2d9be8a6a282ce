import { act, render } from "@testing-library/react";
import { expect, test, vi } from "vitest";
import { LazyPlot } from "./LazyPlot";

test("a loaded drawing that is not rendered yet is rendered for printing", async () => {
  // Once the module is there, its import takes no time, in which React would render on a busy machine.
  await import("./PlotDrawing");
  const callbacks: IntersectionObserverCallback[] = [];
  vi.stubGlobal(
    "IntersectionObserver",
    class {
      constructor(callback: IntersectionObserverCallback) {
        callbacks.push(callback);
      }
      observe() {}
      disconnect() {}
    },
  );
  vi.spyOn(HTMLElement.prototype, "clientWidth", "get").mockReturnValue(600);
  const { container } = render(<LazyPlot draw={() => ({ marks: [] })} height={100} />);
  const isDrawn = () => container.querySelector("svg") !== null;

  const entry = { isIntersecting: true } as IntersectionObserverEntry;
  act(() => callbacks[0]?.([entry], {} as IntersectionObserver));
  // Within act, React renders the loaded component only when act ends.
  await act(async () => {
    await import("./PlotDrawing");
    await import("./PlotDrawing");
    expect(isDrawn()).toBe(false);
    dispatchEvent(new Event("beforeprint"));
    expect(isDrawn()).toBe(true);
  });
});
