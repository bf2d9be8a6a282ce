import { screen, within } from "@testing-library/react";
import { expect, test } from "vitest";
import type { SeriesInspection } from "@/api/types";
import { renderPart } from "@/testing/render";
import { Inspection } from "./Inspection";

const series: SeriesInspection = {
  subject: "workqueue:\n  two\x1b[31m parts",
  version: 2,
  series_key: "key",
  change_id: null,
  authors: ["Ada <ada@kernel.example>"],
  cover: null,
  base_commit: null,
  files: 2,
  insertions: 12_345,
  deletions: 4,
  mails: 5,
  problems: [
    { defect: "missing_patch", severity: "error", detail: "patch 2/3 is missing" },
    { defect: "no_base_commit", severity: "warning", detail: "it names no base-commit" },
  ],
  usable: false,
  patches: [
    {
      position: 1,
      subject: "one",
      author: "Ada <ada@kernel.example>",
      date: null,
      message_id: null,
      message: "<b>why</b>",
      insertions: 12_345,
      deletions: 4,
      files: [
        {
          path: "kernel/workqueue.c",
          old_path: null,
          status: "changed",
          insertions: 12_345,
          deletions: 4,
          binary: false,
          changes_code: true,
          symbols: [],
        },
        {
          path: "new.bin",
          old_path: "old.bin",
          status: "renamed",
          insertions: 0,
          deletions: 0,
          binary: true,
          changes_code: true,
          symbols: [],
        },
      ],
    },
  ],
};

test("the series summary uses server figures; texts are escaped", async () => {
  const { container } = await renderPart(<Inspection of={series} />);
  expect(screen.getByRole("heading").textContent).toBe("workqueue: two^[[31m parts");
  expect(container.textContent).toContain("v2 · 1 patch · 2 files +12\u202f345 −4 · 5 mails in the mbox");
  expect(container.textContent).toContain("<b>why</b>");
});

test("problems come first, with their severity", async () => {
  await renderPart(<Inspection of={series} />);
  const problems = within(screen.getAllByRole("list")[0] as HTMLElement).getAllByRole("listitem");
  expect(problems.map(each => each.textContent)).toEqual([
    "error patch 2/3 is missing",
    "warning it names no base-commit",
  ]);
});

test("files show their status; binary files show no line counts", async () => {
  await renderPart(<Inspection of={series} />);
  expect(screen.getByRole("row", { name: /old.bin → new.bin renamed binary/ })).toBeTruthy();
});

test("an mbox without patches shows only its problems", async () => {
  const nothing = {
    ...series,
    patches: [],
    problems: [{ defect: "no_patch", severity: "error", detail: "none" }],
  };
  const { container } = await renderPart(<Inspection of={nothing as SeriesInspection} />);
  expect(container.textContent).toBe("error none");
});
