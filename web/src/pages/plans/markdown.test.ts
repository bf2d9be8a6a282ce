import { expect, test } from "vitest";
import { blocksOf, inlinesOf } from "./markdown";

test("paragraphs join their lines; list items keep continuation lines", () => {
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

test("a list directly after a paragraph is parsed as a list", () => {
  expect(blocksOf("It fails when\n- this\n- that").map(block => block.kind)).toEqual(["paragraph", "list"]);
});

test("underscores, stars in code and globs are not markup", () => {
  expect(inlinesOf("`_raw_*_lock*` and local_l3_share, 2 * 3 * 4")).toEqual([
    { kind: "code", text: "_raw_*_lock*" },
    { kind: "text", text: " and local_l3_share, 2 * 3 * 4" },
  ]);
});

test("only addresses of http and https and pages of the documentation become links", () => {
  expect(inlinesOf("[d](../../docs/plans/rt-app.md)")).toEqual([
    { kind: "link", text: "d", href: "/docs/plans/rt-app/" },
  ]);
  expect(inlinesOf("[a](https://kernel.org/) [b](../x.md) [c](javascript:alert)")).toEqual([
    { kind: "link", text: "a", href: "https://kernel.org/" },
    { kind: "text", text: " " },
    { kind: "text", text: "b" },
    { kind: "text", text: " " },
    { kind: "text", text: "c" },
  ]);
});

test("an unclosed code fence ends with the text", () => {
  expect(blocksOf("```\nx")).toEqual([{ kind: "code", text: "x" }]);
});
