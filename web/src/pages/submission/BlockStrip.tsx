import { Link } from "@tanstack/react-router";
import { type KeyboardEvent, memo } from "react";
import type { BlockStep, BootStep, RunStep } from "@/api/types";
import { oneLine } from "@/lib/words";
import classes from "./BlockStrip.module.css";
import { toBoot } from "./selection";
import { bootsByBlock, CELL_WORDS, type Cell, cellsOf, letter } from "./steps";

/**
 * A run's blocks in order, one cell per boot: letter and color show the arm, the shape shows the state. The strip is
 * one tab stop; arrow keys move between boots.
 */
export function BlockStrip({ run, boot }: { run: RunStep; boot: number | null }) {
  const byBlock = bootsByBlock(run.boots);
  const blocks = run.blocks.map(block => {
    const boots = byBlock.get(block.block) ?? NONE;
    return { block, boots, shown: cellsOf(block, boots).flatMap(cell => cell.boot?.id ?? []) };
  });
  const all = blocks.flatMap(each => each.shown);
  const stop = boot !== null && all.includes(boot) ? boot : all.at(-1);
  return (
    <ol
      className={classes.strip}
      aria-label={`Blocks of ${run.plan} on ${run.device_type}`}
      onKeyDown={moveFocus}
    >
      {blocks.map(({ block, boots, shown }) => (
        <Block
          key={block.block}
          block={block}
          boots={boots}
          run={run.id}
          chosen={boot !== null && shown.includes(boot) ? boot : null}
          stop={stop !== undefined && shown.includes(stop) ? stop : null}
        />
      ))}
    </ol>
  );
}

function moveFocus(event: KeyboardEvent<HTMLElement>) {
  const cells = [...event.currentTarget.querySelectorAll("a")];
  const at = cells.indexOf(document.activeElement as HTMLAnchorElement);
  const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: cells.length - 1 }[event.key];
  if (at === -1 || to === undefined) return;
  event.preventDefault();
  cells[to]?.focus();
}

const NONE: readonly BootStep[] = [];

interface BlockProps {
  block: BlockStep;
  boots: readonly BootStep[];
  run: number;
  chosen: number | null;
  /** The boot that receives focus from Tab. */
  stop: number | null;
}

/** Query results share unchanged objects, so only blocks that changed are rendered again. */
const Block = memo(
  ({ block, boots, run, chosen, stop }: BlockProps) => {
    const again = block.discarded > 0 ? `, ${block.discarded} discarded` : "";
    return (
      <li
        className={classes.block}
        data-arms={block.arms.length}
        aria-label={`Block ${block.block + 1}${again}`}
      >
        {cellsOf(block, boots).map((cell, position) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: cells are identified by their position
          <CellView key={position} {...{ cell, run, block, chosen, stop }} />
        ))}
        {block.discarded > 0 && (
          <span className={classes.discarded} aria-hidden="true">
            {block.discarded}
          </span>
        )}
      </li>
    );
  },
  (a, b) =>
    a.block === b.block &&
    a.run === b.run &&
    a.chosen === b.chosen &&
    a.stop === b.stop &&
    a.boots.length === b.boots.length &&
    a.boots.every((boot, at) => boot === b.boots[at]),
);

function CellView({ cell, run, block, chosen, stop }: Omit<BlockProps, "boots"> & { cell: Cell }) {
  const { arm, state, boot } = cell;
  const words = `Block ${block.block + 1}, ${arm}: ${CELL_WORDS[state]}${
    boot?.failure ? `, ${oneLine(boot.failure.summary)}` : ""
  }${block.discarded > 0 ? `; ${block.discarded} discarded` : ""}`;
  if (!boot) {
    return (
      <span className={classes.cell} data-arm={arm} data-state={state} title={words}>
        <span aria-hidden="true">{letter(arm)}</span>
        <span className="hidden-visually">{words}</span>
      </span>
    );
  }
  return (
    <Link
      to="/submissions/$id"
      params={params => params as { id: number }}
      search={before => ({ ...before, ...toBoot(run, boot.id) })}
      resetScroll={false}
      className={classes.cell}
      tabIndex={boot.id === stop ? 0 : -1}
      data-arm={arm}
      data-state={state}
      aria-current={boot.id === chosen ? "true" : undefined}
      aria-label={words}
      title={words}
    >
      {letter(arm)}
    </Link>
  );
}

/** Legend for the cells of a strip. */
export function StripLegend() {
  const kinds: { state: Cell["state"]; word: string }[] = [
    { state: "pending", word: "pending" },
    { state: "booting", word: "booting" },
    { state: "measuring", word: "measuring" },
    { state: "passed", word: "passed" },
    { state: "failed", word: "failed" },
    { state: "lost", word: "not run" },
    { state: "not_needed", word: "not needed" },
  ];
  return (
    <p className={classes.legend}>
      <span>
        <span className={classes.cell} data-arm="baseline" data-state="passed">
          A
        </span>{" "}
        baseline
      </span>
      <span>
        <span className={classes.cell} data-arm="candidate" data-state="passed">
          B
        </span>{" "}
        candidate
      </span>
      {kinds.map(({ state, word }) => (
        <span key={state}>
          <span className={classes.cell} data-arm="baseline" data-state={state} aria-hidden="true">
            A
          </span>{" "}
          {word}
        </span>
      ))}
    </p>
  );
}
