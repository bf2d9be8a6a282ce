import { fireEvent, screen } from "@testing-library/react";
import { expect, test, vi } from "vitest";
import { renderPart } from "@/testing/render";
import { type LogAddress, LogView } from "./LogView";
import { Log } from "./log";

const log = new Log();
log.append(new TextEncoder().encode("one\ntwo\nthree two\n<img src=x>\u202e\n"));
log.setState("ended");

async function mount(address: Partial<LogAddress> = {}) {
  const onAddress = vi.fn();
  await renderPart(
    <LogView
      log={log}
      name="Log of build 7"
      address={{ line: null, find: "", ...address }}
      onAddress={onAddress}
      lineHref={line => `/submissions/3?build=7${line === null ? "" : `&line=${line}`}`}
      download={{ href: "/api/v1/builds/7/log", file: "build-7.log" }}
      empty="The log is empty."
    />,
  );
  return onAddress;
}

test("typing searches at once; Enter goes to the match and updates the URL", async () => {
  const onAddress = await mount();
  const field = screen.getByRole("searchbox") as HTMLInputElement;
  fireEvent.change(field, { target: { value: "TWO" } });
  expect(field.value).toBe("TWO");
  fireEvent.keyDown(field, { key: "Enter" });
  expect(onAddress).toHaveBeenLastCalledWith({ line: 2, find: "TWO" }, true);
  fireEvent.keyDown(field, { key: "Enter", shiftKey: true });
  expect(onAddress).toHaveBeenLastCalledWith({ line: 3, find: "TWO" }, true);
});

test("the matches are counted, with the position of the current one", async () => {
  await mount({ find: "two", line: 3 });
  expect(screen.getByText("2 of 2")).toBeTruthy();
});

test("a line number selects the line; a too large one selects the last line", async () => {
  const onAddress = await mount();
  const field = screen.getByLabelText("Line");
  fireEvent.change(field, { target: { value: "99" } });
  fireEvent.submit(field);
  expect(onAddress).toHaveBeenLastCalledWith({ line: 4 }, false);
});

test("the text is shown as text, with control characters made visible", async () => {
  await mount();
  const text = screen.getByLabelText("Log of build 7").textContent ?? "";
  expect(text).toContain("three two");
  expect(text).toContain("<img src=x><202e>");
  expect(document.querySelector("img")).toBeNull();
  expect(screen.getByText("4 lines, 33 B")).toBeTruthy();
});
