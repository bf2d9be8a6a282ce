import { screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { renderPart } from "@/testing/render";
import {
  type CpuLayout,
  declaredLayout,
  describe,
  describeNumbering,
  groupsOf,
  measuredLayout,
} from "./layout";
import { TopologyDrawing } from "./TopologyDrawing";

const XEON = declaredLayout({
  sockets: 2,
  l3_per_socket: 1,
  cores_per_l3: 8,
  threads_per_core: 2,
  numa_nodes: 2,
  numbering: "smt_last",
  clusters: [],
});
const RYZEN = declaredLayout({
  sockets: 1,
  l3_per_socket: 4,
  cores_per_l3: 3,
  threads_per_core: 2,
  numa_nodes: 1,
  numbering: "contiguous",
  clusters: [],
});
/** Two big cores in one cluster, four LITTLE in the other, one L3. */
const CHROMEBOOK: CpuLayout = measuredLayout({
  cpus: 6,
  package: [0, 0, 0, 0, 0, 0],
  node: [0, 0, 0, 0, 0, 0],
  l3: [0, 0, 0, 0, 0, 0],
  core: [0, 1, 2, 3, 4, 5],
  cluster: [0, 0, 0, 0, 1, 1],
  capacity: [512, 512, 512, 512, 1024, 1024],
} as never);

test("the description has the sizes of all levels", () => {
  expect(describe(RYZEN)).toBe(
    "1 package, 1 NUMA node, 4 L3 domains of 3 cores, 2 threads per core: 24 CPUs",
  );
  expect(describe(XEON)).toBe(
    "2 packages, 2 NUMA nodes, 2 L3 domains of 8 cores, 2 threads per core: 32 CPUs",
  );
  expect(describe(CHROMEBOOK)).toBe(
    "1 package, 1 NUMA node, 1 L3 domain of 6 cores, 2 clusters, 4 LITTLE and 2 big cores, no SMT: 6 CPUs",
  );
});

test("the description tells how SMT siblings are numbered", () => {
  expect(describeNumbering(RYZEN)).toBe("SMT siblings are neighbours (0,1)");
  expect(describeNumbering(XEON)).toBe("SMT siblings are 16 apart (0,16)");
  expect(describeNumbering(CHROMEBOOK)).toBe("");
});

test("the CPUs of a declared topology are numbered as the kernel numbers them", () => {
  const packages = groupsOf(XEON);
  expect(packages.map(each => each.label)).toEqual(["Package 0, node 0", "Package 1, node 1"]);
  expect(packages[1]?.groups[0]?.cores.map(core => core.cpus)[0]).toEqual([8, 24]);
});

test("only levels that divide the enclosing level are drawn", () => {
  expect(groupsOf(XEON)[0]?.groups[0]?.kind).toBe("l3");
  const split = declaredLayout({
    sockets: 1,
    l3_per_socket: 4,
    cores_per_l3: 2,
    threads_per_core: 1,
    numa_nodes: 2,
    numbering: "contiguous",
    clusters: [],
  });
  expect(groupsOf(split)[0]?.groups.map(each => [each.kind, each.groups.length])).toEqual([
    ["node", 2],
    ["node", 2],
  ]);
});

test("without an L3 cache the clusters are drawn with their last level's name", () => {
  const device = declaredLayout({
    sockets: 1,
    l3_per_socket: 0,
    cores_per_l3: 0,
    threads_per_core: 1,
    numa_nodes: 1,
    numbering: "contiguous",
    clusters: [
      { cores: 4, capacity: 485 },
      { cores: 2, capacity: 1024 },
    ],
  });
  expect(groupsOf(device)[0]?.groups.map(each => [each.label, each.cores.length])).toEqual([
    ["L2 0, LITTLE", 4],
    ["L2 1, big", 2],
  ]);
  expect(describe(device)).toContain("2 L2 domains, 4 LITTLE and 2 big cores");
});

test("labels tell big and LITTLE clusters apart", () => {
  const clusters = groupsOf(CHROMEBOOK)[0]?.groups[0]?.groups;
  expect(clusters?.map(each => each.label)).toEqual(["Cluster 0, LITTLE", "Cluster 1, big"]);
});

test("the drawing has a name, a description, and all CPUs inside its frame", async () => {
  const { container } = await renderPart(<TopologyDrawing layout={XEON} name="xeon-2s" />);
  const drawing = screen.getByRole("img", { name: /CPU topology of xeon-2s/ });
  expect(drawing.querySelector("desc")?.textContent).toContain("32 CPUs");
  const threads = [...container.querySelectorAll("rect")].filter(rect =>
    rect.getAttribute("class")?.includes("thread"),
  );
  expect(threads).toHaveLength(32);
  const [, , width, height] = (drawing.getAttribute("viewBox") as string).split(" ").map(Number) as [
    number,
    number,
    number,
    number,
  ];
  const at = (rect: Element, name: string) => Number(rect.getAttribute(name));
  for (const rect of container.querySelectorAll("rect")) {
    expect(at(rect, "x") + at(rect, "width")).toBeLessThanOrEqual(width);
    expect(at(rect, "y") + at(rect, "height")).toBeLessThanOrEqual(height);
  }
});

test("CPUs keep their numbers if other CPUs are offline", async () => {
  const device = measuredLayout({
    cpus: 4,
    online: [0, 1, 4, 5],
    package: [0, 0, 0, 0],
    node: [0, 0, 0, 0],
    l3: [0, 0, 0, 0],
    core: [0, 1, 0, 1],
  } as never);
  expect(describeNumbering(device)).toBe("SMT siblings are 4 apart (0,4)");
  const { container } = await renderPart(<TopologyDrawing layout={device} name="half" />);
  const numbers = [...container.querySelectorAll("text")].map(text => Number(text.textContent));
  expect(numbers.filter(number => !Number.isNaN(number))).toEqual([0, 4, 1, 5]);
});
