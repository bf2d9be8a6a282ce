import { useId, useMemo } from "react";
import {
  type Core,
  type CpuLayout,
  describe,
  describeNumbering,
  type Group,
  groupsOf,
  numberOf,
} from "./layout";
import classes from "./TopologyDrawing.module.css";

interface TopologyDrawingProps {
  layout: CpuLayout;
  /** The device or its type, for the accessible name. */
  name: string;
  /** Show the description below the drawing; otherwise it is only the accessible description. */
  words?: boolean;
  /** Stack packages vertically, for narrow layouts. */
  stacked?: boolean;
  /** CPUs to highlight, such as those of one affinity scope. */
  highlight?: ReadonlySet<number>;
}

/**
 * CPU topology of a device: packages, NUMA nodes, L3 domains, clusters, cores and SMT threads. A drawing that is
 * wider than its place scrolls, so that its text stays readable.
 */
export function TopologyDrawing({
  layout,
  name,
  words = false,
  stacked = false,
  highlight,
}: TopologyDrawingProps) {
  const id = useId();
  const description = [describe(layout), describeNumbering(layout)].filter(Boolean).join(". ");
  const drawing = useMemo(() => draw(layout, stacked ? 1 : 2), [layout, stacked]);
  return (
    <div className={classes.whole}>
      <svg
        className={classes.drawing}
        viewBox={`0 0 ${drawing.width} ${drawing.height}`}
        style={{ width: drawing.width }}
        role="img"
        aria-labelledby={`${id}-title ${id}-words`}
      >
        <title id={`${id}-title`}>{`CPU topology of ${name}`}</title>
        <desc id={`${id}-words`}>{description}</desc>
        {drawing.boxes.map(box => (
          <g key={`${box.kind}-${box.id}`} data-kind={box.kind}>
            <rect
              className={classes.box}
              data-kind={box.kind}
              x={box.x}
              y={box.y}
              width={box.width}
              height={box.height}
              rx={3}
            />
            <text className={classes.label} x={box.x + PAD} y={box.y + HEAD - 4}>
              {box.label}
            </text>
          </g>
        ))}
        {drawing.threads.map(thread => (
          <g key={thread.cpu}>
            <rect
              className={classes.thread}
              data-size={thread.size ?? undefined}
              data-highlight={highlight?.has(thread.cpu) || undefined}
              x={thread.x}
              y={thread.y}
              width={thread.width}
              height={thread.height}
            />
            {drawing.numbered && (
              <text
                className={classes.cpu}
                data-highlight={highlight?.has(thread.cpu) || undefined}
                x={thread.x + thread.width / 2}
                y={thread.y + thread.height / 2}
              >
                {numberOf(layout, thread.cpu)}
              </text>
            )}
          </g>
        ))}
        {drawing.cores.map(core => (
          <rect
            key={core.id}
            className={classes.core}
            x={core.x}
            y={core.y}
            width={core.width}
            height={core.height}
            rx={2}
          />
        ))}
      </svg>
      {words && <p className="fine">{description}</p>}
    </div>
  );
}

const PAD = 5;
const GAP = 4;
const HEAD = 14;
/** With more CPUs, their numbers would be too small to read. */
const MAX_NUMBERED_CPUS = 96;

interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

interface Drawing {
  width: number;
  height: number;
  numbered: boolean;
  boxes: (Box & Pick<Group, "kind" | "id" | "label">)[];
  cores: (Box & { id: number })[];
  threads: (Box & { cpu: number; size: Core["size"] })[];
}

/** An element of the layout with its size; `place` adds it to the drawing. */
interface Block {
  width: number;
  height: number;
  place(x: number, y: number): void;
}

/** Lay out the drawing with `packages` packages in a row. */
function draw(layout: CpuLayout, packages: number): Drawing {
  const numbered = layout.cpus <= MAX_NUMBERED_CPUS;
  const drawing: Drawing = { width: 0, height: 0, numbered, boxes: [], cores: [], threads: [] };
  const cell = numbered ? { width: 18, height: 16 } : { width: 7, height: 9 };

  function coreBlock(core: Core): Block {
    // A LITTLE core is drawn smaller, so that the size does not depend on colour.
    const height = core.size === "LITTLE" ? cell.height * 0.75 : cell.height;
    const width = cell.width * core.cpus.length;
    return {
      width,
      height: cell.height,
      place(x, y) {
        const top = y + cell.height - height;
        for (const [at, cpu] of core.cpus.entries()) {
          drawing.threads.push({
            cpu,
            size: core.size,
            x: x + at * cell.width,
            y: top,
            width: cell.width,
            height,
          });
        }
        drawing.cores.push({ id: core.id, x, y: top, width, height });
      },
    };
  }

  function groupBlock(group: Group): Block {
    const inside =
      group.groups.length > 0
        ? rows(group.groups.map(groupBlock), group.groups.length > 2 ? 2 : 3)
        : rows(group.cores.map(coreBlock), coresPerRow(group.cores.length));
    const width = Math.max(inside.width + 2 * PAD, group.label.length * 6.2 + 2 * PAD);
    const height = inside.height + HEAD + PAD;
    return {
      width,
      height,
      place(x, y) {
        drawing.boxes.push({ kind: group.kind, id: group.id, label: group.label, x, y, width, height });
        inside.place(x + PAD, y + HEAD);
      },
    };
  }

  const all = rows(groupsOf(layout).map(groupBlock), packages);
  all.place(0.5, 0.5);
  return { ...drawing, width: Math.ceil(all.width + 1), height: Math.ceil(all.height + 1) };
}

function coresPerRow(cores: number): number {
  return cores <= 4 ? cores : cores <= 16 ? 4 : 8;
}

/** Arrange blocks in rows of `columns` blocks. */
function rows(blocks: readonly Block[], columns: number): Block {
  const lines: Block[][] = [];
  for (let at = 0; at < blocks.length; at += columns) lines.push(blocks.slice(at, at + columns));
  const widthOf = (line: readonly Block[]) => line.reduce((sum, block) => sum + block.width + GAP, -GAP);
  const heightOf = (line: readonly Block[]) => Math.max(0, ...line.map(block => block.height));
  return {
    width: Math.max(0, ...lines.map(widthOf)),
    height: lines.reduce((sum, line) => sum + heightOf(line) + GAP, -GAP),
    place(x, y) {
      let top = y;
      for (const line of lines) {
        let left = x;
        for (const block of line) {
          block.place(left, top);
          left += block.width + GAP;
        }
        top += heightOf(line) + GAP;
      }
    },
  };
}
