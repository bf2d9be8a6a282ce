/** A device's CPUs as groups within groups, and in words. The API's `CpuLayout` has one entry per CPU in each list. */
import type { CpuLayout as ApiLayout, MeasuredTopology, Topology } from "@/api/types";
import { count } from "@/lib/numbers";

/** One entry per CPU in each list; see contracts/wqlab_contracts/cpu_layout.py. */
export type CpuLayout = Omit<ApiLayout, "basis">;

/** The layout that a device type declares. */
export function declared(topology: Topology): CpuLayout {
  const { sockets, threads_per_core, numa_nodes = 1, numbering = "contiguous", clusters = [] } = topology;
  const { l3_per_socket, cores_per_l3 = 0 } = topology;
  const kinds = spread(clusters.map(cluster => cluster.cores));
  // Without an L3 cache the clusters are what shares the last level.
  const domains =
    l3_per_socket === 0 ? kinds : spread(Array<number>(sockets * l3_per_socket).fill(cores_per_l3));
  const domainsPerSocket = l3_per_socket === 0 ? clusters.length : l3_per_socket;
  const cores = domains.length;
  const each = Array.from({ length: cores * threads_per_core }, (_, cpu) => cpu);
  const core = each.map(cpu => (numbering === "smt_last" ? cpu % cores : Math.floor(cpu / threads_per_core)));
  const l3 = core.map(of => domains[of] as number);
  const cluster = core.map(of => kinds[of] ?? 0);
  const capacity = cluster.map(of => clusters[of]?.capacity ?? 0);
  return {
    cpus: each.length,
    numbers: null,
    package: l3.map(of => Math.floor(of / domainsPerSocket)),
    node: core.map(of => Math.floor((of * numa_nodes) / cores)),
    l3,
    last_level: l3_per_socket === 0 ? "L2" : "L3",
    cluster: clusters.length > 0 && !samePartition(cluster, l3) ? cluster : null,
    core,
    thread: threads(core),
    capacity: distinct(capacity) > 1 ? capacity : null,
  };
}

/** The group of each member, from the sizes of the groups: [2, 1] to [0, 0, 1]. */
function spread(sizes: readonly number[]): number[] {
  return sizes.flatMap((size, group) => Array<number>(size).fill(group));
}

/** A CPU's own number, from its place in the lists: others may be offline. */
export function numberOf(layout: CpuLayout, cpu: number): number {
  return layout.numbers?.[cpu] ?? cpu;
}

/** The layout that a booted kernel reported. */
export function measured(topology: MeasuredTopology): CpuLayout {
  const { cluster, capacity } = topology;
  return {
    cpus: topology.cpus,
    numbers: topology.online ?? null,
    package: topology.package,
    node: topology.node,
    l3: topology.l3,
    last_level: topology.last_level ?? "L3",
    cluster: cluster ?? null,
    core: topology.core,
    thread: threads(topology.core),
    capacity: capacity && new Set(capacity).size > 1 ? capacity : null,
  };
}

function threads(core: readonly number[]): number[] {
  const seen = new Map<number, number>();
  return core.map(of => {
    const place = seen.get(of) ?? 0;
    seen.set(of, place + 1);
    return place;
  });
}

export type Size = "big" | "middle" | "LITTLE";

export interface Core {
  id: number;
  cpus: number[];
  /** On a device whose cores differ. */
  size: Size | null;
}

export interface Group {
  kind: "package" | "node" | "l3" | "cluster";
  id: number;
  /** Said inside the drawing. */
  label: string;
  groups: Group[];
  /** Of the innermost group. */
  cores: Core[];
}

/** Groups within groups, without levels that only repeat the one around them. */
export function grouped(layout: CpuLayout): Group[] {
  const every = Array.from({ length: layout.cpus }, (_, cpu) => cpu);
  const levels = (["package", "node", "l3", "cluster"] as const).filter(kind => {
    if (kind === "cluster") return layout.cluster != null && !samePartition(layout.cluster, layout.l3);
    // One NUMA node per package, or one for all, is said in words; only nodes within a package are drawn.
    if (kind === "node")
      return distinct(layout.node) > distinct(layout.package) && divides(layout.node, layout.package);
    return true;
  });
  return split(layout, every, levels);
}

function split(layout: CpuLayout, cpus: readonly number[], levels: readonly Group["kind"][]): Group[] {
  const [kind, ...inner] = levels;
  if (kind === undefined) return [];
  return [...by(cpus, layout[kind] as readonly number[])].map(([id, members]) => ({
    kind,
    id,
    label: labelOf(layout, kind, id, members),
    groups: split(layout, members, inner),
    cores: inner.length > 0 ? [] : coresOf(layout, members),
  }));
}

function coresOf(layout: CpuLayout, cpus: readonly number[]): Core[] {
  return [...by(cpus, layout.core)].map(([id, members]) => ({
    id,
    cpus: members,
    size: sizeOf(layout, members[0] as number),
  }));
}

function sizeOf(layout: CpuLayout, cpu: number): Size | null {
  if (!layout.capacity) return null;
  const sizes = [...new Set(layout.capacity)].toSorted((a, b) => a - b);
  const place = sizes.indexOf(layout.capacity[cpu] as number);
  return place === sizes.length - 1 ? "big" : place === 0 ? "LITTLE" : "middle";
}

function labelOf(layout: CpuLayout, kind: Group["kind"], id: number, members: readonly number[]): string {
  const sizes = new Set(members.map(cpu => sizeOf(layout, cpu)));
  const size = sizes.size === 1 ? [...sizes][0] : null;
  const lastLevel = layout.last_level === "cluster" ? "Cluster" : layout.last_level;
  const name = { package: "Package", node: "Node", l3: lastLevel, cluster: "Cluster" }[kind];
  const alsoNode =
    kind === "package" && distinct(layout.node) > 1 && samePartition(layout.node, layout.package);
  const more = alsoNode
    ? `, node ${layout.node[members[0] as number]}`
    : size && kind !== "package"
      ? `, ${size}`
      : "";
  return `${name} ${id}${more}`;
}

/** `2 packages, 2 NUMA nodes, 2 L3 domains of 8 cores, 2 threads a core: 32 CPUs`. */
export function inWords(layout: CpuLayout): string {
  const cores = distinct(layout.core);
  const domains = distinct(layout.l3);
  const perDomain = evenly(layout.l3, layout.core);
  const perCore = evenly(
    layout.core,
    layout.core.map((_, cpu) => cpu),
  );
  const sizes = layout.capacity
    ? [
        ...new Set(
          coresOf(
            layout,
            layout.core.map((_, cpu) => cpu),
          ).map(core => core.size),
        ),
      ].map(
        size =>
          `${
            coresOf(
              layout,
              layout.core.map((_, cpu) => cpu),
            ).filter(core => core.size === size).length
          } ${size}`,
      )
    : [];
  return [
    count(distinct(layout.package), "package"),
    count(distinct(layout.node), "NUMA node"),
    `${count(domains, `${layout.last_level} domain`)}${perDomain ? ` of ${count(perDomain, "core")}` : ""}`,
    ...(layout.cluster ? [count(distinct(layout.cluster), "cluster")] : []),
    ...(sizes.length > 0 ? [`${sizes.join(" and ")} cores`] : []),
    perCore === 1 ? "no SMT" : perCore ? `${perCore} threads a core` : count(cores, "core"),
  ]
    .join(", ")
    .concat(`: ${count(layout.cpus, "CPU")}`);
}

/** How SMT siblings are numbered, which decides what a run of CPUs shares; "" without SMT. */
export function numbering(layout: CpuLayout): string {
  const cores = [
    ...by(
      layout.core.map((_, cpu) => cpu),
      layout.core,
    ).values(),
  ].filter(cpus => cpus.length > 1);
  const steps = new Set(
    cores.map(cpus => numberOf(layout, cpus[1] as number) - numberOf(layout, cpus[0] as number)),
  );
  if (steps.size !== 1) return "";
  const [step] = steps;
  return step === 1 ? "SMT siblings are neighbours (0,1)" : `SMT siblings are ${step} apart (0,${step})`;
}

/** Members per group where all groups have the same number; null otherwise. */
function evenly(groups: readonly number[], members: readonly number[]): number | null {
  const sizes = new Set(
    [
      ...by(
        groups.map((_, cpu) => cpu),
        groups,
      ).values(),
    ].map(cpus => new Set(cpus.map(cpu => members[cpu])).size),
  );
  return sizes.size === 1 ? ([...sizes][0] as number) : null;
}

function by(cpus: readonly number[], group: readonly number[]): Map<number, number[]> {
  const found = new Map<number, number[]>();
  for (const cpu of cpus) {
    const id = group[cpu] as number;
    const members = found.get(id);
    if (members) members.push(cpu);
    else found.set(id, [cpu]);
  }
  return found;
}

function distinct(ids: readonly number[]): number {
  return new Set(ids).size;
}

function divides(inner: readonly number[], outer: readonly number[]): boolean {
  return distinct(inner.map((id, cpu) => id * 65_536 + (outer[cpu] as number))) === distinct(inner);
}

function samePartition(a: readonly number[], b: readonly number[]): boolean {
  return distinct(a) === distinct(b) && divides(a, b);
}
