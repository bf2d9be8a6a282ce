import { expect, test } from "vitest";
import { blocksOf, inlinesOf } from "./markdown";

test("paragraphs join their lines; lists keep what is written under an item", () => {
  expect(
    blocksOf("# plan\n\nOne\ntwo.\n\n- a: `x`\n  goes on\n- b\n\n1. first\n\n```\n$ run # it\n\n```\nend"),
  ).toEqual([
    { kind: "heading", level: 1, inlines: [{ kind: "text", text: "plan" }] },
    { kind: "paragraph", inlines: [{ kind: "text", text: "One two." }] },
    {
      kind: "list",
      ordered: false,
      items: [
        [
          { kind: "text", text: "a: " },
          { kind: "code", text: "x" },
          { kind: "text", text: " goes on" },
        ],
        [{ kind: "text", text: "b" }],
      ],
    },
    { kind: "list", ordered: true, items: [[{ kind: "text", text: "first" }]] },
    { kind: "code", text: "$ run # it\n" },
    { kind: "paragraph", inlines: [{ kind: "text", text: "end" }] },
  ]);
});

test("a list right after a paragraph is a list", () => {
  expect(blocksOf("It fails when\n- this\n- that").map(block => block.kind)).toEqual(["paragraph", "list"]);
});

test("names with underscores, stars in code and globs stay as they are", () => {
  expect(inlinesOf("`_raw_*_lock*` and local_l3_share, 2 * 3 * 4")).toEqual([
    { kind: "code", text: "_raw_*_lock*" },
    { kind: "text", text: " and local_l3_share, 2 * 3 * 4" },
  ]);
});

test("only links to the web are links", () => {
  expect(inlinesOf("[a](https://kernel.org/) [b](../x.md) [c](javascript:alert)")).toEqual([
    { kind: "link", text: "a", href: "https://kernel.org/" },
    { kind: "text", text: " " },
    { kind: "text", text: "b" },
    { kind: "text", text: " " },
    { kind: "text", text: "c" },
  ]);
});

test("a fence that is never closed ends with the text", () => {
  expect(blocksOf("```\nx")).toEqual([{ kind: "code", text: "x" }]);
});
