import type { CanaryMetric, CanaryRecord } from "@/api/types";
import { oneLine } from "@/lib/words";
import { type Column, DataTable } from "@/parts/DataTable";

interface Row {
  record: CanaryRecord;
  metric: CanaryMetric;
}

const KINDS: Record<CanaryRecord["kind"], string> = {
  same_kernel: "same kernel",
  nops: "nops in one arm",
  other_layout: "another layout in one arm",
};

/** Sentences of the records, then a table with the noise of each metric. `by` is what the first column names. */
export function Canaries({
  records,
  by,
  caption,
}: {
  records: CanaryRecord[];
  by: "device" | "plan";
  caption: string;
}) {
  const rows = records.flatMap(record => record.metrics.map(metric => ({ record, metric })));
  return (
    <>
      <ul>
        {records.map(record => (
          <li key={`${record.device} ${record.plan} ${record.kind}`}>{oneLine(record.line)}.</li>
        ))}
      </ul>
      <DataTable
        caption={caption}
        captionHidden
        columns={by === "device" ? DEVICE_COLUMNS : PLAN_COLUMNS}
        rows={rows}
        rowKey={({ record, metric }) => `${record.device} ${record.plan} ${record.kind} ${metric.metric}`}
        fixedOrder
        narrow="stack"
        empty="No A/A comparisons yet."
      />
    </>
  );
}

function columns(by: "device" | "plan"): readonly Column<Row>[] {
  return [
    {
      id: by,
      header: by === "device" ? "Device" : "Plan",
      rowHeader: true,
      value: ({ record }) => record[by],
    },
    { id: "arms", header: "Arms", value: ({ record }) => KINDS[record.kind] },
    { id: "metric", header: "Metric", value: ({ metric }) => metric.metric },
    {
      id: "floor",
      header: "Noise floor",
      hint: "Robust standard deviation between boots, in the noisiest scenario",
      numeric: true,
      value: ({ metric }) => metric.floor ?? 0,
      cell: ({ metric }) => floorText(metric),
    },
    ...[6, 8, 10, 16].map(
      (blocks): Column<Row> => ({
        id: `effect-${blocks}`,
        header: `${blocks} blocks`,
        hint: `Smallest effect that ${blocks} blocks find in four of five cases`,
        numeric: true,
        value: ({ metric }) => effectOf(metric, blocks),
        cell: ({ metric }) => effectText(metric, blocks),
      }),
    ),
    {
      id: "comparisons",
      header: "A/A comparisons",
      numeric: true,
      value: ({ metric }) => metric.false_positives.comparisons + metric.false_positives.constant,
    },
    {
      id: "called",
      header: "Called different",
      hint: "With the 95 % interval of the rate",
      value: ({ metric }) => metric.false_positives.rate ?? null,
      cell: ({ metric }) => rateText(metric),
    },
  ];
}

const DEVICE_COLUMNS = columns("device");
const PLAN_COLUMNS = columns("plan");

const amount = (size: number, unit: string) => `${Number(size.toPrecision(3))} ${unit}`;

/** Return the floor with its unit; 0 if no boot ever differed. */
export function floorText(metric: CanaryMetric): string {
  return metric.floor == null ? "0" : amount(metric.floor, metric.effect_unit);
}

function effectOf(metric: CanaryMetric, blocks: number): number | null {
  return metric.effects.find(each => each.blocks === blocks)?.effect ?? null;
}

/** Return the smallest effect that so many blocks find; any difference is found in counts that never vary. */
export function effectText(metric: CanaryMetric, blocks: number): string {
  if (metric.floor == null) return "any";
  const effect = effectOf(metric, blocks);
  return effect == null ? "none" : amount(effect, metric.effect_unit);
}

/** Return how many comparisons a verdict called different, with rate and interval. */
export function rateText({ false_positives: of }: CanaryMetric): string {
  if (of.rate == null || of.rate_low == null || of.rate_high == null) return "no noise";
  return `${of.called_different}, ${percent(of.rate)} % [${percent(of.rate_low)}, ${percent(of.rate_high)}]`;
}

const percent = (share: number) => (100 * share).toFixed(1).replace(/\.0$/, "");
