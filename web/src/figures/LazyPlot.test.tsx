import { act, render } from "@testing-library/react";
import { expect, test, vi } from "vitest";
import { LazyPlot } from "./LazyPlot";

test("a drawing that has come and waits to be shown is on the sheet that is printed now", async () => {
  const near: IntersectionObserverCallback[] = [];
  vi.stubGlobal(
    "IntersectionObserver",
    class {
      constructor(come: IntersectionObserverCallback) {
        near.push(come);
      }
      observe() {}
      disconnect() {}
    },
  );
  vi.spyOn(HTMLElement.prototype, "clientWidth", "get").mockReturnValue(600);
  const { container } = render(<LazyPlot draw={() => ({ marks: [] })} height={100} />);
  const isDrawn = () => container.querySelector("svg") !== null;

  const entry = { isIntersecting: true } as IntersectionObserverEntry;
  act(() => near[0]?.([entry], {} as IntersectionObserver));
  await import("./PlotDrawing");
  // React has been told, and shows it in a task of its own.
  expect(isDrawn()).toBe(false);
  dispatchEvent(new Event("beforeprint"));
  expect(isDrawn()).toBe(true);
});
