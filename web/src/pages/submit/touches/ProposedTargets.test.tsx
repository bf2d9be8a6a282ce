import { fireEvent, screen } from "@testing-library/react";
import { expect, test, vi } from "vitest";
import type { TargetProposal, Touches } from "@/api/types";
import { renderPart } from "@/testing/render";
import { type Draft, nameOf, requestOf, selectedTargets } from "../draft/draft";
import { submitSearch } from "../search";
import { Proposals, withProposal } from "./ProposedTargets";

const empty: Draft = submitSearch.defaults;
const flush: TargetProposal = {
  target: { plan: "fsync", device_type: "xeon", parameters: {} },
  devices: ["multi_node"],
  also_on: [],
  asks: ["Does a flush take\x1b[31m fewer locks?", "What does it cost?"],
  because: [{ path: "kernel/workqueue.c", symbols: ["flush_a", "flush_b", "flush_c", "flush_d"] }],
  by_symbol: true,
  quote: null,
};
const crypt: TargetProposal = {
  ...flush,
  target: { plan: "crypt", device_type: "ryzen", settings: ["scope=cache", "scope=cpu"], parameters: {} },
  asks: ["Where does encryption run?"],
  because: [{ path: "drivers/md/dm-crypt.c", symbols: [] }],
  by_symbol: false,
};
const touches: Touches = {
  proposals: [flush, crypt],
  left_out: [{ plan: "hotplug", devices: [], why: "this lab has no plan hotplug", because: [] }],
  uncovered: ["mm/slub.c"],
  files: 3000,
  looked_at: 2000,
  device_s: 1200,
  build_s: null,
};

test("proposals ask a question and say why; texts of the series are escaped", async () => {
  const { container } = await renderPart(
    <Proposals of={touches} types={[]} draft={empty} change={() => {}} />,
  );
  expect(
    screen.getByRole("checkbox", { name: "Does a flush take^[[31m fewer locks? What does it cost?" }),
  ).toBeTruthy();
  expect(container.textContent).toContain("fsync on xeon");
  expect(container.textContent).toContain(
    "because of flush_a, flush_b, flush_c and 1 more in kernel/workqueue.c",
  );
  expect(container.textContent).toContain("crypt on ryzen · 2 settings");
  expect(container.textContent).toContain("2 questions");
  expect(container.textContent).toContain("20 min of device time in all");
  expect(container.textContent).toContain("time unknown");
});

test("what is not proposed is named", async () => {
  await renderPart(<Proposals of={touches} types={[]} draft={empty} change={() => {}} />);
  expect(screen.getByText("hotplug is not proposed: this lab has no plan hotplug.")).toBeTruthy();
  expect(screen.getByText("No plan is known for mm/slub.c.")).toBeTruthy();
  expect(screen.getByText("Only the first 2000 of 3000 files were looked at.")).toBeTruthy();
});

test("a ticked proposal becomes a target, with its settings; no other combination does", async () => {
  const change = vi.fn();
  await renderPart(<Proposals of={touches} types={[]} draft={empty} change={change} />);
  fireEvent.click(screen.getByRole("button", { name: "Select all" }));
  const draft: Draft = change.mock.calls[0]?.[0](empty);
  expect(selectedTargets(draft).map(nameOf)).toEqual(["fsync@xeon", "crypt@ryzen"]);
  expect(requestOf(draft, null, "linux").targets).toEqual([
    { plan: "fsync", device_type: "xeon" },
    { plan: "crypt", device_type: "ryzen", settings: ["scope=cache", "scope=cpu"] },
  ]);
});

test("a cleared proposal leaves the other targets as they were", () => {
  const both = [flush, crypt].reduce((draft, each) => withProposal(draft, each, true), empty);
  const one = withProposal(both, crypt, false);
  expect(selectedTargets(one).map(nameOf)).toEqual(["fsync@xeon"]);
  expect(one.setting).toEqual([]);
  expect(withProposal(one, flush, false)).toEqual(empty);
});

test("combinations that a person selected stay selected", () => {
  const own: Draft = { ...empty, plan: ["a", "b"], type: ["x"] };
  const more = withProposal(own, flush, true);
  expect(selectedTargets(more).map(nameOf)).toEqual(["a@x", "b@x", "fsync@xeon"]);
  expect(more.without).toEqual(["a@xeon", "b@xeon", "fsync@x"]);
});

test("a series without a plan says so", async () => {
  const none = { ...touches, proposals: [], device_s: null };
  await renderPart(<Proposals of={none} types={[]} draft={empty} change={() => {}} />);
  expect(screen.getByText(/no plan for what this series changes/)).toBeTruthy();
  expect(screen.queryByRole("button")).toBeNull();
});
