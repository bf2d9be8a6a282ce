import { screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { renderPart } from "@/testing/render";
import { SourceFile } from "./SourceFile";

const text = "#!/bin/sh\nmeasure() {\n\tfio\n}\n";
const file = (open = true) => <SourceFile name="a.sh" text={text} open={open} />;
const marked = (container: Element) =>
  [...container.querySelectorAll("li[data-marked]")].map(line => line.querySelector("code")?.textContent);

test("each line links to its file and line number", async () => {
  await renderPart(file());
  expect(screen.getAllByRole("link").map(link => link.getAttribute("href"))).toEqual([
    "#a.sh-L1",
    "#a.sh-L2",
    "#a.sh-L3",
    "#a.sh-L4",
  ]);
});

test("a hash marks its line and opens only their file", async () => {
  const { container } = await renderPart(
    <>
      {file(false)}
      <SourceFile name="b.sh" text={text} open={false} />
    </>,
    { at: "/#a.sh-L2" },
  );
  expect(marked(container)).toEqual(["measure() {"]);
  const [a, b] = container.querySelectorAll("details");
  expect([a?.open, b?.open]).toEqual([true, false]);
});
