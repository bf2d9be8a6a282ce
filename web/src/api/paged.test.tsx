import { act, screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { Pager } from "@/parts/Pager";
import { renderPart } from "@/testing/render";
import { type Page, usePaged } from "./paged";

const pages: Record<string, Page<number>> = {
  "": { items: [9, 8], total: 5, next: "b" },
  b: { items: [7, 6], total: 5, next: "c" },
  c: { items: [5], total: 5, next: null },
};

function Shown({ cursor }: { cursor: string }) {
  const page = pages[cursor] as Page<number>;
  return <Pager paged={usePaged(cursor, page, 2)} shown={page.items.length} total={page.total} />;
}

test("a linked page leads to older and newest entries and shows no position", async () => {
  const { router } = await renderPart(<Shown cursor="b" />, { at: "/?cursor=b" });
  expect(screen.queryByText(/ of /)).toBeNull();
  await act(async () => screen.getByRole("button", { name: "Older" }).click());
  expect(router.state.location.search).toEqual({ cursor: "c" });
  expect(router.state.location.state).toMatchObject({ trail: ["b"] });
});

test("the first page shows its position and disables Newer", async () => {
  await renderPart(<Shown cursor="" />);
  expect(screen.getByText("1 to 2 of 5")).toBeTruthy();
  expect((screen.getByRole("button", { name: "Newer" }) as HTMLButtonElement).disabled).toBe(true);
});
