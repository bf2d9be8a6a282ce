import { QueryClientProvider } from "@tanstack/react-query";
import { createMemoryHistory, RouterProvider } from "@tanstack/react-router";
import { fireEvent, render, screen, waitFor, within } from "@testing-library/react";
import { beforeEach, expect, test, vi } from "vitest";
import { makeQueryClient } from "@/api/queries";
import { reportPageQuery, takeEmbeddedReport } from "@/api/reportPage";
import type { Report, TargetReport } from "@/api/types";
import { Theme } from "@/app/theme";
import { makeRouter } from "@/router";
import { makeReport, type ReportShape } from "@/testing/report";

const FIRST = `<h1>faster flushes</h1><p>Better on xeon-2s.</p><a href="?cell=2%2FLOW%2Flocality%2Fscope%3Dcache#cell">locality</a>`;

beforeEach(() => {
  // The only request of the page besides the report: the session.
  vi.stubGlobal(
    "fetch",
    vi.fn(async () => Response.json({ user: null, csrf_token: "" })),
  );
  vi.stubGlobal("scrollTo", vi.fn());
});

async function show(report: Report, search = "") {
  const client = makeQueryClient();
  const page = { first: FIRST, report, text: "the report as text" };
  client.setQueryData(reportPageQuery(7).queryKey, page);
  const router = makeRouter(client);
  const history = createMemoryHistory({ initialEntries: [`/r/7${search}`] });
  router.update({ history } as Parameters<typeof router.update>[0]);
  await router.load();
  const shown = render(
    <QueryClientProvider client={client}>
      <Theme>
        <RouterProvider router={router} />
      </Theme>
    </QueryClientProvider>,
  );
  await screen.findByRole("heading", { level: 1 });
  return { ...shown, router };
}

const numbers = () => within(document.getElementById("numbers") as HTMLElement);
const LARGE: ReportShape = {
  devices: Array.from({ length: 8 }, (_, at) => ({ name: `device-${at}` })),
  scenarios: ["HIGH", "MED", "LOW"],
  settings: ["scope=system", "scope=cache", "scope=numa"],
  counters: 10,
};

test("the first screen is the server's, and its links select a comparison without a reload", async () => {
  const { container, router } = await show(makeReport());
  expect(container.querySelector(".report-first")?.innerHTML).toBe(FIRST);
  fireEvent.click(container.querySelector(".report-first a") as Element);
  await screen.findByRole("heading", { level: 2, name: "LOW: locality on tiny" });
  expect(router.state.location.search).toMatchObject({ cell: "2/LOW/locality/scope=cache" });
});

test("the report in the page that the browser loaded is not requested", async () => {
  const page = document.implementation.createHTMLDocument();
  const data = JSON.stringify({ report: makeReport(), text: "as text" }).replaceAll("<", "\\u003c");
  page.body.innerHTML = `<div class="report-first">${FIRST}</div><script type="application/json" id="report">${data}</script>`;
  const client = makeQueryClient();
  expect(takeEmbeddedReport(client, page)).toBe(true);
  expect(client.getQueryData(reportPageQuery(7).queryKey)).toEqual({
    first: FIRST,
    report: JSON.parse(JSON.stringify(makeReport())),
    text: "as text",
  });
  expect(takeEmbeddedReport(client, document.implementation.createHTMLDocument())).toBe(false);
});

test("differences between the kernels' environments are shown above the figures", async () => {
  const report = makeReport();
  const environment = {
    device: "xeon-2s-1",
    topology: null,
    cmdline: {},
    release: {},
    build_id_gnu: {},
    facts: { "default affinity scope": "cache", HZ: "250" },
    commands: {},
    differences: [{ name: "default affinity scope", baseline: "cache", candidate: "numa" }],
  };
  const targets = report.targets.map((target, at) => (at === 0 ? { ...target, environment } : target));
  await show({ ...report, targets });
  const table = screen.getByRole("table", { name: "Differences between the kernels' environments" });
  expect(within(table).getAllByRole("row").at(1)?.textContent).toBe("default affinity scopecachenuma");
  expect(screen.getByText("HZ")).toBeTruthy();
  expect(screen.getAllByText("default affinity scope"), "not repeated with one value").toHaveLength(1);
});

test("only visible rows of 2,000 comparisons are rendered; aria-rowcount has all", async () => {
  const report = makeReport(LARGE);
  const many = report.targets.flatMap(target => target.comparisons).length;
  expect(many).toBeGreaterThanOrEqual(2000);
  await show(report);
  expect(numbers().getByRole("table").getAttribute("aria-rowcount")).toBe(String(many + 1));
  expect(numbers().queryAllByRole("rowheader").length).toBeLessThan(150);
});

test("the URL holds the selected comparison and the table's filters", async () => {
  const { router } = await show(
    makeReport(),
    "?cell=2/LOW/locality/scope=cache&evidence=mechanism&topology=tiny",
  );
  expect(screen.getByRole("heading", { level: 2, name: "LOW: locality on tiny" })).toBeTruthy();
  const rows = numbers().getAllByRole("rowheader").length;
  fireEvent.change(numbers().getByLabelText("Metric"), { target: { value: "locality" } });
  await waitFor(() =>
    expect(router.state.location.search).toMatchObject({ metric: "locality", evidence: "mechanism" }),
  );
  await waitFor(() => expect(numbers().getAllByRole("rowheader").length).toBeLessThan(rows));
  fireEvent.change(screen.getByLabelText("Topology", { selector: "#cell select" }), {
    target: { value: "1" },
  });
  await waitFor(() =>
    expect(router.state.location.search).toMatchObject({
      cell: "1/LOW/locality/scope=cache",
      topology: "tiny",
    }),
  );
});

test("without evidence only two means are shown: no effect, interval or color", async () => {
  await show(makeReport(), "?cell=2/HIGH/busy/scope=cache&topology=tiny&metric=busy&show=busy");
  const section = document.getElementById("cell") as HTMLElement;
  expect(section.textContent).toContain("no evidence");
  expect(section.textContent).toContain("timing there is not evidence of performance.");
  expect(section.querySelector("dl")?.textContent).toBe("Baseline62.50 %Candidate72.25 %n6 and 6 boots");
  expect(section.querySelectorAll("figure")).toHaveLength(0);
  for (const row of numbers().getAllByRole("row").slice(1)) {
    expect(row.textContent).not.toMatch(/[±+\u2212[\]]/);
    expect(row.querySelector("[data-tone]:not([data-tone=none])")).toBeNull();
  }
  const matrix = document.getElementById("matrix") as HTMLElement;
  const tiny = within(matrix)
    .getAllByRole("row")
    .filter(row => row.textContent?.startsWith("tiny"));
  expect(tiny.length).toBeGreaterThan(0);
  for (const row of tiny) expect(row.querySelector("[data-tone]:not([data-tone=none])")).toBeNull();
});

test("without evidence, swapping the arms changes only the two numbers", async () => {
  const swapped = (report: Report): Report => ({
    ...report,
    targets: report.targets.map(target => ({
      ...target,
      comparisons: target.comparisons.map(of =>
        of.evidence === "none" ? { ...of, baseline: of.candidate, candidate: of.baseline } : of,
      ),
    })),
  });
  const at = "?cell=2/HIGH/busy/scope=cache&topology=tiny&metric=busy&show=busy";
  const report = makeReport();
  const seen = async (of: Report) => {
    const { container, unmount } = await show(of, at);
    const html = ["matrix", "cell", "numbers"]
      .map(id => container.querySelector(`#${id}`)?.outerHTML)
      .join("")
      .replaceAll(/\b(62\.50|7[12]\.\d+)\b/g, "N")
      .replaceAll(/_r_\w+_/g, "");
    unmount();
    return html;
  };
  expect(await seen(swapped(report))).toBe(await seen(report));
});

test("every failed attempt is listed with its cause", async () => {
  const report = makeReport();
  const attempt = {
    what: "run" as const,
    run_id: 1,
    build_id: null,
    plan: "affinity",
    device_type: "xeon-2s",
    device: "xeon-2s-1",
    block: 0,
    arm: "candidate" as const,
    attempt: 0,
    at: null,
  };
  await show({
    ...report,
    attempts: [
      {
        ...attempt,
        failure: {
          kind: "kernel",
          summary: "panic",
          excerpt: "",
          advice: "",
          of_variant: false,
          stack: [],
          defect: "",
        },
      },
      {
        ...attempt,
        block: 1,
        failure: {
          kind: "infrastructure",
          summary: "no power",
          excerpt: "",
          advice: "",
          of_variant: false,
          stack: [],
          defect: "",
        },
      },
    ],
  });
  const section = document.getElementById("attempts") as HTMLElement;
  expect(section.textContent).toContain("2 in total: kernel 1, infrastructure 1.");
  expect(section.textContent).toContain("affinity on xeon-2s-1, block 2, candidate, attempt 1");
});

test("the copy button copies the server's plain text", async () => {
  const writeText = vi.fn().mockResolvedValue(undefined);
  vi.stubGlobal("isSecureContext", true);
  vi.spyOn(navigator, "clipboard", "get").mockReturnValue({ writeText } as unknown as Clipboard);
  await show(makeReport());
  fireEvent.click(screen.getByRole("button", { name: "Copy report text" }));
  await waitFor(() => expect(writeText).toHaveBeenCalledWith("the report as text"));
});

test("a failed submission leaves its failure to the first screen, and leaves out what does not apply", async () => {
  const title = "BUG: kernel NULL pointer dereference";
  const failure = {
    kind: "kernel" as const,
    summary: `oops: ${title}`,
    excerpt: `${title}\nRIP: flush_one+0x0/0x9 (kernel/flush.c:7)  poke(where);`,
    advice: "",
    of_variant: false,
    stack: [],
    defect: `oops: ${title} in flush_one@kernel/flush.c:7`,
  };
  const report = makeReport({ devices: [{ name: "xeon-2s" }], questions: ["kernel"] });
  const [whole] = report.targets as [TargetReport];
  const target: TargetReport = {
    ...whole,
    verdict: "failed",
    outcome: "failed",
    failure,
    headline: `the candidate showed oops in 2 of 2 boots: ${title}; the baseline came through 2 of 2 boots`,
    reasons: [`locality: FAILED: kernel: oops: ${title}`],
    comparisons: whole.comparisons.map(of => ({ ...of, verdict: "failed", candidate: null })),
    findings: [],
  };
  const attempt = {
    what: "run" as const,
    run_id: target.run_id,
    build_id: null,
    plan: "affinity",
    device_type: "xeon-2s",
    device: "xeon-2s-1",
    block: 0,
    arm: "candidate" as const,
    attempt: 0,
    at: null,
    failure,
  };
  await show({
    ...report,
    summary: "fails on xeon-2s",
    submission: { ...report.submission, outcome: "failed", failure },
    targets: [target],
    attempts: [attempt, { ...attempt, attempt: 1 }],
    failed_at: ["affinity on xeon-2s-1, candidate, block 1, attempts 1 and 2"],
  });
  const page = document.body.textContent ?? "";
  expect(page).not.toContain(title);
  expect(document.getElementById("method")).toBeNull();
  expect(document.getElementById("attempts")).toBeNull();
  expect(document.getElementById("numbers")).toBeNull();
  expect(screen.queryByText("Reasons")).toBeNull();
});

test("two modes of a device and the cause of a missing figure are shown", async () => {
  const report = makeReport();
  const target = report.targets.find(each => each.device_type === "tiny");
  const cell = target?.comparisons.find(
    of => of.scenario === "LOW" && of.metric === "locality" && of.setting === "scope=cache",
  );
  if (!target || !cell?.baseline) throw new Error("the made-up report has no such comparison");
  cell.baseline.modes = [
    { mean: 60, n: 3 },
    { mean: 84, n: 5 },
  ];
  cell.not_measured = "unpaired";
  target.unsupported = [
    {
      scenario: "LOW",
      setting: "scope=numa",
      metric: null,
      arm: "candidate",
      cause: "no_samples",
      reason: "fio moved no data",
    },
  ];
  await show(report, "?cell=2/LOW/locality/scope=cache");
  const figures = document.getElementById("cell") as HTMLElement;
  expect(figures.textContent).toMatch(/Two modes, \w+3 boots near 60 %, 5 boots near 84 %/);
  expect(figures.textContent).toContain("Not measurednot paired");
  expect(document.body.textContent).toContain("LOW scope=numa, candidate: no samples: fio moved no data");
});
