import type { Profile, TestPlan } from "@/api/types";
import { count } from "@/lib/numbers";
import { roughDuration } from "@/lib/time";
import { type Column, DataTable } from "@/parts/DataTable";
import classes from "./Metrics.module.css";

interface Row {
  name: string;
  hardware: string;
  emulated: string;
}

const COLUMNS: readonly Column<Row>[] = [
  { id: "name", header: "Parameter", rowHeader: true, value: row => row.name },
  profile("hardware", "Hardware"),
  profile("emulated", "Emulated devices"),
];

function profile(of: "hardware" | "emulated", header: string): Column<Row> {
  return {
    id: of,
    header,
    value: row => row[of],
    cell: row => <span className={classes.meaning}>{row[of]}</span>,
  };
}

/** Table of a plan's defaults on hardware and on emulated devices. */
export function Profiles({ plan }: { plan: TestPlan }) {
  const row = (name: string, of: (profile: Profile) => string): Row => ({
    name,
    hardware: of(plan.hardware),
    emulated: of(plan.emulated),
  });
  const names = new Set([...Object.keys(plan.hardware.parameters), ...Object.keys(plan.emulated.parameters)]);
  const hasScenarios = plan.hardware.scenarios != null || plan.emulated.scenarios != null;
  const rows = [
    ...(hasScenarios ? [row("Scenarios", of => of.scenarios?.join("  ") ?? "all")] : []),
    row("Blocks", of => String(of.blocks)),
    row("Repetitions per boot", repetitions),
    row("Timeout per repetition", of => roughDuration(of.measure_timeout_s)),
    ...(plan.axes.length > 0 ? [row("Settings", of => of.settings.join("  "))] : []),
    ...[...names].map(name => row(name, of => String(of.parameters[name] ?? ""))),
  ];
  return (
    <DataTable
      caption={`Defaults of ${plan.name}`}
      captionHidden
      copyable={false}
      fixedOrder
      columns={COLUMNS}
      rows={rows}
      rowKey={each => each.name}
    />
  );
}

function repetitions({ repetitions: { warmup, warmup_most, untraced, traced } }: Profile): string {
  const warmups =
    warmup_most == null ? count(warmup, "warm-up") : `${warmup} to ${count(warmup_most, "warm-up")}`;
  const parts = [warmup > 0 && `${warmups}, discarded`, `${untraced} untraced`, `${traced} traced`];
  return parts.filter(Boolean).join("; ");
}
