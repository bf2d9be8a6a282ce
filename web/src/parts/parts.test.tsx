import { act, fireEvent, screen, waitFor, within } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import type { Failure, Verdict } from "@/api/types";
import { VERDICTS } from "@/lib/words";
import { renderPart } from "@/testing/render";
import { CommandBlock } from "./CommandBlock";
import { CopyButton } from "./CopyButton";
import { EvidenceMark } from "./EvidenceMark";
import { FailureCard, FailureSentence, MainFailure } from "./FailureCard";
import { Figure } from "./Figure";
import { announce, LiveRegion } from "./LiveRegion";
import { Progress } from "./Progress";
import { RelativeTime } from "./RelativeTime";
import { VerdictBadge, VerdictCounts } from "./VerdictBadge";

afterEach(() => void vi.useRealTimers());

test.each(Object.keys(VERDICTS) as Verdict[])(
  "%s has a word; its sign is hidden from screen readers",
  async verdict => {
    await renderPart(<VerdictBadge verdict={verdict} />);
    const badge = screen.getByText(VERDICTS[verdict].word).parentElement as HTMLElement;
    expect(badge.querySelector("[aria-hidden]")?.textContent ?? "").toBe(VERDICTS[verdict].sign);
    expect(badge.title).toBe(VERDICTS[verdict].meaning);
  },
);

test("a short badge keeps its word for screen readers", async () => {
  await renderPart(<VerdictBadge verdict="regression" short />);
  expect(screen.getByText("regression").className).toContain("hidden-visually");
});

test("counts of verdicts start with the most severe and omit zeros", async () => {
  const { container } = await renderPart(
    <VerdictCounts verdicts={{ improvement: 2, equivalent: 0, regression: 1 }} />,
  );
  expect(container.textContent).toBe("\u2212regression+improvement×2");
});

test("the evidence mark shows its explanation", async () => {
  await renderPart(<EvidenceMark evidence="none" explain />);
  expect(screen.getByText("no evidence")).toBeTruthy();
  expect(screen.getByText(/not evidence of performance/)).toBeTruthy();
});

test("a failure shows cause, summary, excerpt and advice; its texts are cleaned", async () => {
  const failure: Failure = {
    kind: "kernel",
    summary: "panic in wq_worker\x1b[2J",
    excerpt: "<img src=x onerror=alert(1)>\u202e",
    advice: "Look at the console of boot 3B.",
    of_variant: false,
    stack: [],
    defect: "",
  };
  const { container } = await renderPart(<FailureCard failure={failure} what="boot 3B" />);
  const card = screen.getByRole("group", { name: /Failure: panic in wq_worker\^\[\[2J/ });
  expect(card.textContent).toContain("kernel · the kernel under test · boot 3B");
  expect(within(card).getByText(/Look at the console/)).toBeTruthy();
  expect(screen.getByLabelText("Excerpt").textContent).toBe("<img src=x onerror=alert(1)><202e>");
  expect(container.querySelector("img")).toBeNull();
});

test("a repeated failure is a link to the main failure", async () => {
  const main: Failure = {
    kind: "user",
    summary: "candidate kernel: it does not compile",
    excerpt: `${"CC a.o\n".repeat(200)}error: b`,
    advice: "",
    of_variant: false,
    stack: [],
    defect: "",
  };
  const shortened = `${main.excerpt.slice(0, 600)}\n[... 700 characters left out ...]\nerror: b`;
  const repeated: Failure = { ...main, summary: "it does not compile", excerpt: shortened };
  const other: Failure = { ...main, excerpt: "error: c" };
  const { container } = await renderPart(
    <>
      <MainFailure failure={main} />
      <FailureCard failure={repeated} what="build 3" mainFailure={main} />
      <FailureCard failure={other} mainFailure={main} />
      <p>
        <FailureSentence text={`not measured: ${main.summary}`} mainFailure={main} where="above" />
      </p>
    </>,
  );
  expect(screen.getAllByRole("group", { name: /^Failure/ })).toHaveLength(2);
  expect(container.textContent).toContain("user · build 3 · the failure above");
  expect(container.textContent).toContain("not measured: the failure above");
  const links = screen.getAllByRole("link", { name: "the failure above" });
  expect(links).toHaveLength(2);
  const { hash } = new URL((links[0] as HTMLAnchorElement).href);
  expect(container.querySelector(hash)?.textContent).toContain(main.summary);
});

test("a relative time updates itself and has the absolute time as tooltip", async () => {
  vi.useFakeTimers({
    toFake: ["setInterval", "clearInterval", "Date"],
    now: new Date("2026-11-21T18:00:00Z"),
  });
  await renderPart(<RelativeTime at="2026-11-21T17:59:20Z" />);
  const time = screen.getByText("40 s ago") as HTMLTimeElement;
  expect(time.dateTime).toBe("2026-11-21T17:59:20.000Z");
  expect(time.title).toMatch(/^2026-11-21 .*:20 /);
  act(() => void vi.advanceTimersByTime(5000));
  expect(time.textContent).toBe("45 s ago");
});

test("a missing time is shown as never", async () => {
  await renderPart(<RelativeTime at={null} />);
  expect(screen.getByText("never")).toBeTruthy();
});

test("the selected form of a command is copied; arrow keys change the form", async () => {
  const writeText = vi.fn().mockResolvedValue(undefined);
  vi.stubGlobal("isSecureContext", true);
  vi.spyOn(navigator, "clipboard", "get").mockReturnValue({ writeText } as unknown as Clipboard);
  await renderPart(
    <CommandBlock
      commands={[
        { name: "wqlab", text: "wqlab submit" },
        { name: "curl", text: "curl -X POST" },
      ]}
    />,
  );
  const tabs = screen.getAllByRole("tab");
  expect(tabs.map(tab => tab.getAttribute("aria-selected"))).toEqual(["true", "false"]);
  fireEvent.keyDown(tabs[0] as HTMLElement, { key: "ArrowRight" });
  expect(screen.getByRole("tabpanel").textContent).toBe("curl -X POST");
  fireEvent.click(screen.getByRole("button", { name: "Copy the curl command" }));
  await waitFor(() => expect(writeText).toHaveBeenCalledWith("curl -X POST"));
  vi.unstubAllGlobals();
});

test("the button reports a failed copy", async () => {
  vi.stubGlobal("isSecureContext", false);
  document.execCommand = () => false;
  await renderPart(<CopyButton text="x" />);
  fireEvent.click(screen.getByRole("button"));
  expect(await screen.findByText("Copy failed", { selector: ":not([aria-hidden])" })).toBeTruthy();
  vi.unstubAllGlobals();
});

test("progress shows count and remaining time, and nothing if unknown", async () => {
  const soon = new Date(Date.now() + 6 * 60_000).toISOString();
  const { rerender } = await renderPart(<Progress done={5} total={12} noun="boots" finishAt={soon} />);
  expect(screen.getByText("5 of 12 boots, about 6 min left")).toBeTruthy();
  rerender(<Progress done={0} total={0} noun="boots" finishAt={null} />);
  expect((screen.getByRole("progressbar") as HTMLProgressElement).value).toBe(0);
});

test("a figure has a name, a description and a data table", async () => {
  await renderPart(
    <Figure title="Effects" description="One dot a topology." table={<p>the data</p>}>
      <svg />
    </Figure>,
  );
  const figure = screen.getByRole("figure", { name: "Effects" });
  expect(figure.getAttribute("aria-describedby")).toBe(within(figure).getByText("One dot a topology.").id);
  expect(within(figure).getByText("the data")).toBeTruthy();
});

test("a repeated announcement changes the live region", async () => {
  await renderPart(<LiveRegion />);
  act(() => announce("Run 3 ended"));
  const first = screen.getByRole("status").textContent;
  act(() => announce("Run 3 ended"));
  expect(screen.getByRole("status").textContent).not.toBe(first);
});
