import { Link } from "@tanstack/react-router";
import { memo } from "react";
import type { BlockStep, BootStep, RunStep } from "@/api/types";
import { oneLine } from "@/lib/words";
import classes from "./BlockStrip.module.css";
import { toBoot } from "./selection";
import { bootsByBlock, CELL_WORDS, type Cell, cellsOf, LETTER } from "./steps";

/** A run's blocks in order, each boot a cell with its arm's letter; the cell's form says its state, its colour the arm. */
export function BlockStrip({ run, boot }: { run: RunStep; boot: number | null }) {
  const boots = bootsByBlock(run.boots);
  return (
    <ol className={classes.strip} aria-label={`Blocks of ${run.plan} on ${run.device_type}`}>
      {run.blocks.map(block => (
        <Block
          key={block.block}
          block={block}
          boots={boots.get(block.block) ?? NONE}
          run={run.id}
          chosen={boots.get(block.block)?.some(each => each.id === boot) ? boot : null}
        />
      ))}
    </ol>
  );
}

const NONE: readonly BootStep[] = [];

interface BlockProps {
  block: BlockStep;
  boots: readonly BootStep[];
  run: number;
  chosen: number | null;
}

/** An answer shares what did not change with the one before, so of 100 blocks only those at work are drawn again. */
const Block = memo(
  ({ block, boots, run, chosen }: BlockProps) => {
    const again = block.discarded > 0 ? `, ${block.discarded} discarded` : "";
    return (
      <li
        className={classes.block}
        data-arms={block.arms.length}
        aria-label={`Block ${block.block + 1}${again}`}
      >
        {cellsOf(block, boots).map((cell, position) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a block's cells are known by their position
          <CellView key={position} cell={cell} run={run} block={block} chosen={chosen} />
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
    a.boots.length === b.boots.length &&
    a.boots.every((boot, at) => boot === b.boots[at]),
);

function CellView({
  cell,
  run,
  block,
  chosen,
}: {
  cell: Cell;
  run: number;
  block: BlockStep;
  chosen: number | null;
}) {
  const { arm, state, boot } = cell;
  const words = `Block ${block.block + 1}, ${arm}: ${CELL_WORDS[state]}${
    boot?.failure ? `, ${oneLine(boot.failure.summary)}` : ""
  }${block.discarded > 0 ? `; ${block.discarded} discarded before` : ""}`;
  if (!boot) {
    return (
      <span className={classes.cell} data-arm={arm} data-state={state} title={words}>
        <span aria-hidden="true">{LETTER[arm]}</span>
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
      data-arm={arm}
      data-state={state}
      data-marked={boot.findings > 0 || undefined}
      aria-current={boot.id === chosen ? "true" : undefined}
      aria-label={words}
      title={words}
    >
      {LETTER[arm]}
    </Link>
  );
}

/** What the forms of the cells mean. */
export function StripLegend() {
  const kinds: { state: Cell["state"]; word: string }[] = [
    { state: "pending", word: "to come" },
    { state: "booting", word: "booting" },
    { state: "measuring", word: "measuring" },
    { state: "passed", word: "passed" },
    { state: "failed", word: "failed" },
    { state: "lost", word: "will not come" },
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
