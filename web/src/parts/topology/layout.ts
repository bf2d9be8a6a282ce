/**
 * CPU layout of a device: nested groups and a description. Each list of the API's `CpuLayout` has one entry per CPU.
 */
import type { CpuLayout as ApiLayout, MeasuredTopology, Topology } from "@/api/types";
import { count } from "@/lib/numbers";

/** One entry per CPU in each list; see contracts/wqlab_contracts/cpu_layout.py. */
export type CpuLayout = Omit<ApiLayout, "basis">;

/** Return the layout that a device type declares. */
export function declaredLayout(topology: Topology): CpuLayout {
  const { sockets, threads_per_core, numa_nodes = 1, numbering = "contiguous", clusters = [] } = topology;
  const { l3_per_socket, cores_per_l3 = 0 } = topology;
  const clusterOfCore = groupIds(clusters.map(cluster => cluster.cores));
  // Without an L3 cache, each cluster shares the last-level cache.
  const domains =
    l3_per_socket === 0 ? clusterOfCore : groupIds(Array<number>(sockets * l3_per_socket).fill(cores_per_l3));
  const domainsPerSocket = l3_per_socket === 0 ? clusters.length : l3_per_socket;
  const cores = domains.length;
  const each = Array.from({ length: cores * threads_per_core }, (_, cpu) => cpu);
  const core = each.map(cpu => (numbering === "smt_last" ? cpu % cores : Math.floor(cpu / threads_per_core)));
  const l3 = core.map(of => domains[of] as number);
  const cluster = core.map(of => clusterOfCore[of] ?? 0);
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
    thread: threadIndexes(core),
    capacity: countDistinct(capacity) > 1 ? capacity : null,
  };
}

/** Return the group of each member, given the sizes of the groups: [2, 1] gives [0, 0, 1]. */
function groupIds(sizes: readonly number[]): number[] {
  return sizes.flatMap((size, group) => Array<number>(size).fill(group));
}

/** Return the kernel's number of a CPU, given its index: other CPUs may be offline. */
export function numberOf(layout: CpuLayout, cpu: number): number {
  return layout.numbers?.[cpu] ?? cpu;
}

/** Return the layout that a booted kernel reported. */
export function measuredLayout(topology: MeasuredTopology): CpuLayout {
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
    thread: threadIndexes(topology.core),
    capacity: capacity && new Set(capacity).size > 1 ? capacity : null,
  };
}

/** Return the index of each CPU within its core. */
function threadIndexes(core: readonly number[]): number[] {
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
  /** Null if all cores of the device are equal. */
  size: Size | null;
}

export interface Group {
  kind: "package" | "node" | "l3" | "cluster";
  id: number;
  /** Label in the drawing. */
  label: string;
  groups: Group[];
  /** Cores of an innermost group; empty otherwise. */
  cores: Core[];
}

/** Return the nested groups, without levels that repeat the enclosing level. */
export function groupsOf(layout: CpuLayout): Group[] {
  const every = Array.from({ length: layout.cpus }, (_, cpu) => cpu);
  const levels = (["package", "node", "l3", "cluster"] as const).filter(kind => {
    if (kind === "cluster") return layout.cluster != null && !samePartition(layout.cluster, layout.l3);
    // Only NUMA nodes within a package are drawn; other nodes are part of the label and the description.
    if (kind === "node")
      return (
        countDistinct(layout.node) > countDistinct(layout.package) &&
        isSubdivision(layout.node, layout.package)
      );
    return true;
  });
  return split(layout, every, levels);
}

function split(layout: CpuLayout, cpus: readonly number[], levels: readonly Group["kind"][]): Group[] {
  const [kind, ...inner] = levels;
  if (kind === undefined) return [];
  return [...groupBy(cpus, layout[kind] as readonly number[])].map(([id, members]) => ({
    kind,
    id,
    label: labelOf(layout, kind, id, members),
    groups: split(layout, members, inner),
    cores: inner.length > 0 ? [] : coresOf(layout, members),
  }));
}

function coresOf(layout: CpuLayout, cpus: readonly number[]): Core[] {
  return [...groupBy(cpus, layout.core)].map(([id, members]) => ({
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
    kind === "package" && countDistinct(layout.node) > 1 && samePartition(layout.node, layout.package);
  const more = alsoNode
    ? `, node ${layout.node[members[0] as number]}`
    : size && kind !== "package"
      ? `, ${size}`
      : "";
  return `${name} ${id}${more}`;
}

/** Describe the layout: `2 packages, 2 NUMA nodes, 2 L3 domains of 8 cores, 2 threads per core: 32 CPUs`. */
export function describe(layout: CpuLayout): string {
  const cores = countDistinct(layout.core);
  const domains = countDistinct(layout.l3);
  const perDomain = uniformSize(layout.l3, layout.core);
  const perCore = uniformSize(
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
    count(countDistinct(layout.package), "package"),
    count(countDistinct(layout.node), "NUMA node"),
    `${count(domains, `${layout.last_level} domain`)}${perDomain ? ` of ${count(perDomain, "core")}` : ""}`,
    ...(layout.cluster ? [count(countDistinct(layout.cluster), "cluster")] : []),
    ...(sizes.length > 0 ? [`${sizes.join(" and ")} cores`] : []),
    perCore === 1 ? "no SMT" : perCore ? `${perCore} threads per core` : count(cores, "core"),
  ]
    .join(", ")
    .concat(`: ${count(layout.cpus, "CPU")}`);
}

/** Describe how SMT siblings are numbered; "" without SMT or if the distance varies. */
export function describeNumbering(layout: CpuLayout): string {
  const cores = [
    ...groupBy(
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

/** Return the number of members per group; null if it differs between groups. */
function uniformSize(groups: readonly number[], members: readonly number[]): number | null {
  const sizes = new Set(
    [
      ...groupBy(
        groups.map((_, cpu) => cpu),
        groups,
      ).values(),
    ].map(cpus => new Set(cpus.map(cpu => members[cpu])).size),
  );
  return sizes.size === 1 ? ([...sizes][0] as number) : null;
}

/** Group CPUs by their group id. */
function groupBy(cpus: readonly number[], group: readonly number[]): Map<number, number[]> {
  const found = new Map<number, number[]>();
  for (const cpu of cpus) {
    const id = group[cpu] as number;
    const members = found.get(id);
    if (members) members.push(cpu);
    else found.set(id, [cpu]);
  }
  return found;
}

/** Return the number of distinct ids. */
function countDistinct(ids: readonly number[]): number {
  return new Set(ids).size;
}

/** Return true if each inner group lies within one outer group. */
function isSubdivision(inner: readonly number[], outer: readonly number[]): boolean {
  return countDistinct(inner.map((id, cpu) => id * 65_536 + (outer[cpu] as number))) === countDistinct(inner);
}

function samePartition(a: readonly number[], b: readonly number[]): boolean {
  return countDistinct(a) === countDistinct(b) && isSubdivision(a, b);
}
