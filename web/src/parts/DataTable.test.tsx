import { fireEvent, screen, waitFor, within } from "@testing-library/react";
import { expect, test, vi } from "vitest";
import { renderPart } from "@/testing/render";
import { type Column, DataTable } from "./DataTable";

interface Row {
  name: string;
  mean: number | null;
}

const columns: Column<Row>[] = [
  { id: "name", header: "scenario", value: row => row.name, rowHeader: true },
  {
    id: "mean",
    header: "MiB/s",
    numeric: true,
    value: row => row.mean,
    text: row => (row.mean === null ? "" : `\u2212${row.mean}`),
  },
];
const rows: Row[] = [
  { name: "fsync-10", mean: 3 },
  { name: "fsync-9", mean: null },
  { name: "fsync-1", mean: 20 },
];

const names = () => screen.getAllByRole("rowheader").map(cell => cell.textContent);
const table = (props: Partial<Parameters<typeof DataTable<Row>>[0]> = {}) => (
  <DataTable caption="Figures" columns={columns} rows={rows} rowKey={row => row.name} {...props} />
);

test("a header sorts numbers descending and text ascending, missing values last", async () => {
  await renderPart(table());
  const [byName, byMean] = screen.getAllByRole("columnheader");
  const click = (header: HTMLElement | undefined) =>
    fireEvent.click(within(header as HTMLElement).getByRole("button"));
  click(byMean);
  expect(names()).toEqual(["fsync-1", "fsync-10", "fsync-9"]);
  expect(byMean?.getAttribute("aria-sort")).toBe("descending");
  click(byMean);
  expect(names()).toEqual(["fsync-10", "fsync-1", "fsync-9"]);
  click(byMean);
  expect(names()).toEqual(["fsync-10", "fsync-9", "fsync-1"]);
  expect(byMean?.hasAttribute("aria-sort")).toBe(false);
  click(byName);
  expect(names()).toEqual(["fsync-1", "fsync-9", "fsync-10"]);
});

test("the table is copied as aligned ASCII text in the displayed order", async () => {
  const writeText = vi.fn().mockResolvedValue(undefined);
  vi.stubGlobal("isSecureContext", true);
  vi.spyOn(navigator, "clipboard", "get").mockReturnValue({ writeText } as unknown as Clipboard);
  await renderPart(table({ initialSort: { id: "mean", desc: false } }));
  fireEvent.click(screen.getByRole("button", { name: "Copy as text: Figures" }));
  await waitFor(() => expect(writeText).toHaveBeenCalled());
  expect(writeText.mock.calls[0]?.[0]).toBe(
    ["scenario  MiB/s", "---------------", "fsync-10     -3", "fsync-1     -20", "fsync-9"].join("\n"),
  );
  vi.unstubAllGlobals();
});

test("the sort order can be controlled by the page", async () => {
  const onSort = vi.fn();
  await renderPart(table({ sort: { id: "name", desc: true }, onSort }));
  expect(names()).toEqual(["fsync-10", "fsync-9", "fsync-1"]);
  fireEvent.click(screen.getByRole("button", { name: "scenario" }));
  expect(onSort).toHaveBeenCalledWith(null);
});

test("only visible rows of a large table are rendered; aria-rowcount has all", async () => {
  const many = Array.from({ length: 2000 }, (_, at) => ({ name: `scenario-${at}`, mean: at }));
  await renderPart(table({ rows: many }));
  expect(screen.queryAllByRole("rowheader").length).toBeLessThan(200);
  expect(screen.getByRole("table").getAttribute("aria-rowcount")).toBe("2001");
});

test("an empty table shows its empty text", async () => {
  await renderPart(table({ rows: [], empty: "No scenario was measured." }));
  expect(screen.getByText("No scenario was measured.")).toBeTruthy();
});
