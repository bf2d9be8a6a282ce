import { act, fireEvent, screen, waitFor, within } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import type { Failure, Verdict } from "@/api/types";
import { VERDICTS } from "@/lib/words";
import { renderPart } from "@/testing/render";
import { CommandBlock } from "./CommandBlock";
import { CopyButton } from "./CopyButton";
import { EvidenceMark } from "./EvidenceMark";
import { FailureCard, SaidOnce, ToldFailure } from "./FailureCard";
import { Figure } from "./Figure";
import { announce, LiveRegion } from "./LiveRegion";
import { Progress } from "./Progress";
import { RelativeTime } from "./RelativeTime";
import { VerdictBadge, VerdictCounts } from "./VerdictBadge";

afterEach(() => void vi.useRealTimers());

test.each(Object.keys(VERDICTS) as Verdict[])(
  "%s is said in a word, its sign is decoration",
  async verdict => {
    await renderPart(<VerdictBadge verdict={verdict} />);
    const badge = screen.getByText(VERDICTS[verdict].word).parentElement as HTMLElement;
    expect(badge.querySelector("[aria-hidden]")?.textContent ?? "").toBe(VERDICTS[verdict].sign);
    expect(badge.title).toBe(VERDICTS[verdict].meaning);
  },
);

test("a short badge still has its word for those who do not see the sign", async () => {
  await renderPart(<VerdictBadge verdict="regression" short />);
  expect(screen.getByText("regression").className).toContain("hidden-visually");
});

test("counts of verdicts start with the worst and leave out what is not there", async () => {
  const { container } = await renderPart(
    <VerdictCounts verdicts={{ improvement: 2, equivalent: 0, regression: 1 }} />,
  );
  expect(container.textContent).toBe("\u2212regression+improvement×2");
});

test("no evidence explains itself", async () => {
  await renderPart(<EvidenceMark evidence="none" explain />);
  expect(screen.getByText("no evidence")).toBeTruthy();
  expect(screen.getByText(/proves nothing/)).toBeTruthy();
});

test("a failure says whose it is, what happened, and what to do; its text cannot steer the page", async () => {
  const failure: Failure = {
    kind: "kernel",
    summary: "panic in wq_worker\x1b[2J",
    excerpt: "<img src=x onerror=alert(1)>\u202e",
    advice: "Look at the console of boot 3B.",
  };
  const { container } = await renderPart(<FailureCard failure={failure} what="boot 3B" />);
  const card = screen.getByRole("group", { name: /Failure: panic in wq_worker\^\[\[2J/ });
  expect(card.textContent).toContain("kernel · the kernel under test · boot 3B");
  expect(within(card).getByText(/Look at the console/)).toBeTruthy();
  expect(screen.getByLabelText("Excerpt").textContent).toBe("<img src=x onerror=alert(1)><202e>");
  expect(container.querySelector("img")).toBeNull();
});

test("a failure is told once; where it comes again a link leads there", async () => {
  const told: Failure = {
    kind: "user",
    summary: "candidate kernel: it does not compile",
    excerpt: "CC a.o\nerror: b",
    advice: "",
  };
  const again: Failure = { ...told, summary: "it does not compile", excerpt: "error: b" };
  const other: Failure = { ...told, excerpt: "error: c" };
  const { container } = await renderPart(
    <>
      <ToldFailure failure={told} />
      <FailureCard failure={again} what="build 3" told={told} />
      <FailureCard failure={other} told={told} />
      <p>
        <SaidOnce text={`not measured: ${told.summary}`} told={told} where="above" />
      </p>
    </>,
  );
  expect(screen.getAllByRole("group", { name: /^Failure/ })).toHaveLength(2);
  expect(container.textContent).toContain("series · build 3 · the failure above");
  expect(container.textContent).toContain("not measured: the failure above");
  const links = screen.getAllByRole("link", { name: "the failure above" });
  expect(links).toHaveLength(2);
  const { hash } = new URL((links[0] as HTMLAnchorElement).href);
  expect(container.querySelector(hash)?.textContent).toContain(told.summary);
});

test("a time is relative, stays true, and has the absolute behind it", async () => {
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

test("a time that never was says so", async () => {
  await renderPart(<RelativeTime at={null} />);
  expect(screen.getByText("never")).toBeTruthy();
});

test("the shown form of a command is copied, and arrows change the form", async () => {
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

test("where copying is not allowed the button says so", async () => {
  vi.stubGlobal("isSecureContext", false);
  document.execCommand = () => false;
  await renderPart(<CopyButton text="x" />);
  fireEvent.click(screen.getByRole("button"));
  expect(await screen.findByText("Not copied", { selector: ":not([aria-hidden])" })).toBeTruthy();
  vi.unstubAllGlobals();
});

test("progress counts, estimates, and does not pretend to know", async () => {
  const soon = new Date(Date.now() + 6 * 60_000).toISOString();
  const { rerender } = await renderPart(<Progress done={5} total={12} noun="boots" finishAt={soon} />);
  expect(screen.getByText("5 of 12 boots, about 6 min left")).toBeTruthy();
  rerender(<Progress done={0} total={0} noun="boots" finishAt={null} />);
  expect((screen.getByRole("progressbar") as HTMLProgressElement).value).toBe(0);
});

test("a figure has a name, a description and its data", async () => {
  await renderPart(
    <Figure title="Effects" description="One dot a topology." table={<p>the data</p>}>
      <svg />
    </Figure>,
  );
  const figure = screen.getByRole("figure", { name: "Effects" });
  expect(figure.getAttribute("aria-describedby")).toBe(within(figure).getByText("One dot a topology.").id);
  expect(within(figure).getByText("the data")).toBeTruthy();
});

test("an announcement made twice is heard twice", async () => {
  await renderPart(<LiveRegion />);
  act(() => announce("Run 3 ended"));
  const first = screen.getByRole("status").textContent;
  act(() => announce("Run 3 ended"));
  expect(screen.getByRole("status").textContent).not.toBe(first);
});
