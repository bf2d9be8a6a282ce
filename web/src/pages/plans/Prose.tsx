import { useMemo } from "react";
import { clean } from "@/lib/words";
import { Scroll } from "@/parts/Scroll";
import { type Block, blocksOf, type Inline } from "./markdown";
import classes from "./Prose.module.css";

/** Render a plan's README without its level-1 heading, which the page shows. */
export function Prose({ markdown }: { markdown: string }) {
  const blocks = useMemo(
    () => blocksOf(clean(markdown)).filter(block => !(block.kind === "heading" && block.level === 1)),
    [markdown],
  );
  return (
    <div className={classes.prose}>
      {blocks.map((block, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the text does not change
        <Part key={at} block={block} />
      ))}
    </div>
  );
}

function Part({ block }: { block: Block }) {
  if (block.kind === "code") {
    return (
      <Scroll name="Example" className={classes.code}>
        {block.text}
      </Scroll>
    );
  }
  if (block.kind === "heading") {
    return (
      <h3>
        <InlineText inlines={block.inlines} />
      </h3>
    );
  }
  if (block.kind === "paragraph") {
    return (
      <p>
        <InlineText inlines={block.inlines} />
      </p>
    );
  }
  const List = block.ordered ? "ol" : "ul";
  return (
    <List>
      {block.items.map((inlines, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the text does not change
        <li key={at}>
          <InlineText inlines={inlines} />
        </li>
      ))}
    </List>
  );
}

function InlineText({ inlines }: { inlines: readonly Inline[] }) {
  return inlines.map((inline, at) => {
    const key = `${at}`;
    if (inline.kind === "code") return <code key={key}>{inline.text}</code>;
    if (inline.kind === "strong") return <strong key={key}>{inline.text}</strong>;
    if (inline.kind === "em") return <em key={key}>{inline.text}</em>;
    if (inline.kind === "link")
      return (
        <a key={key} href={inline.href} rel="noreferrer">
          {inline.text}
        </a>
      );
    return inline.text;
  });
}
