import type { Profile, TestPlan } from "@/api/types";
import { count } from "@/lib/numbers";
import { rough } from "@/lib/time";
import { type Column, DataTable } from "@/parts/DataTable";
import classes from "./Metrics.module.css";

interface Row {
  name: string;
  hardware: string;
  emulated: string;
}

const COLUMNS: readonly Column<Row>[] = [
  { id: "name", header: "what", rowHeader: true, value: row => row.name },
  profile("hardware", "on hardware"),
  profile("emulated", "on emulated devices"),
];

function profile(of: "hardware" | "emulated", header: string): Column<Row> {
  return {
    id: of,
    header,
    value: row => row[of],
    cell: row => <span className={classes.meaning}>{row[of]}</span>,
  };
}

/** What differs between real hardware and an emulated device. */
export function Profiles({ plan }: { plan: TestPlan }) {
  const row = (name: string, of: (profile: Profile) => string): Row => ({
    name,
    hardware: of(plan.hardware),
    emulated: of(plan.emulated),
  });
  const names = new Set([...Object.keys(plan.hardware.parameters), ...Object.keys(plan.emulated.parameters)]);
  const some = plan.hardware.scenarios != null || plan.emulated.scenarios != null;
  const rows = [
    ...(some ? [row("scenarios", of => of.scenarios?.join("  ") ?? "all")] : []),
    row("blocks", of => String(of.blocks)),
    row("repetitions in each boot", repetitions),
    row("longest repetition", of => rough(of.measure_timeout_s)),
    ...(plan.axes.length > 0 ? [row("settings", of => of.settings.join("  "))] : []),
    ...[...names].map(name => row(name, of => String(of.parameters[name] ?? ""))),
  ];
  return (
    <DataTable
      caption={`How ${plan.name} is run`}
      captionHidden
      copyable={false}
      fixedOrder
      columns={COLUMNS}
      rows={rows}
      rowKey={each => each.name}
    />
  );
}

function repetitions({ repetitions: { warmup, untraced, traced } }: Profile): string {
  const parts = [
    warmup > 0 && `${count(warmup, "warm-up", "warm-ups")}, discarded`,
    `${untraced} untraced`,
    `${traced} traced`,
  ];
  return parts.filter(Boolean).join("; ");
}
