/** Convert a request to shell commands that run unmodified when pasted into CI. */
import type { SubmissionRequest, Target } from "@/api/types";
import type { Command } from "@/parts/CommandBlock";
import { DEFAULT_PRIORITY } from "../draft/draft";

interface Place {
  /** URL of the lab: `https://lab.example`. */
  lab: string;
  /** File name of the mbox; empty for pasted text. */
  file: string;
}

/** Return the `wqlab` and `curl` commands for a request. */
export function commandsOf(request: SubmissionRequest, place: Place): Command[] {
  const file = safeFile(place.file);
  return [
    { name: "wqlab", text: wqlab(request, place.lab, file) },
    { name: "curl", text: curl(request, place.lab, file) },
  ];
}

const TARGET_OPTIONS = new Set(["--scenario", "--setting", "--param"]);

/** The `wqlab submit` command; `--wait` makes its exit status the verdict. */
function wqlab(request: SubmissionRequest, lab: string, file: string): string {
  const git = request.series?.git;
  const thread = request.series?.thread;
  const series = git
    ? [["--git", git.url], ["--ref", git.ref], ...(git.base ? [["--base", git.base]] : [])]
    : thread
      ? [
          [
            "--message-id",
            thread.message_id,
            ...(thread.revision ? ["--revision", String(thread.revision)] : []),
          ],
        ]
      : request.series
        ? [["--mbox", file]]
        : [["--settings-only"]];
  const lines = [
    ["wqlab", "--url", lab, "submit"],
    ...series,
    ["--tree", request.tree],
    ...request.targets.flatMap(optionsOf),
    ...sweepOptions(request),
    [
      ...(request.blocks == null ? [] : ["--blocks", String(request.blocks)]),
      ...(request.looks == null ? [] : ["--looks", request.looks.join(",")]),
      ...(request.layouts == null ? [] : ["--layouts", String(request.layouts)]),
      ...(request.priority === DEFAULT_PRIORITY || request.priority === undefined
        ? []
        : ["--priority", String(request.priority)]),
      ...(request.recipe ? ["--recipe", request.recipe] : []),
      ...(request.backend ? ["--backend", request.backend] : []),
      ...(request.walk ? ["--walk"] : []),
      ...(request.force ? ["--force"] : []),
      ...(request.trace === false ? ["--no-trace"] : []),
      "--wait",
    ],
  ];
  const indent = (word: string | undefined) => (TARGET_OPTIONS.has(word ?? "") ? "    " : "  ");
  return lines
    .map((words, at) => (at > 0 ? indent(words[0]) : "") + words.map(quoted).join(" "))
    .join(" \\\n");
}

/** Options of the sweep, on one line; none without a sweep. */
function sweepOptions({ sweep }: SubmissionRequest): string[][] {
  if (!sweep) return [];
  const base = Object.entries(sweep.base ?? {}).filter(([, value]) => value != null);
  const stay = base.map(([name, value]) => `${name}=${value}`).join(",");
  const costs = sweep.costs ? ["--sweep-costs", sweep.costs] : [];
  return [
    ["--sweep", `${sweep.vary}=${sweep.values.join(",")}`, ...(stay ? ["--sweep-base", stay] : []), ...costs],
  ];
}

/** Options of one target, one line each. */
function optionsOf(target: Target): string[][] {
  return [
    ["--target", target.device_type ? `${target.plan}@${target.device_type}` : target.plan],
    ...(target.scenarios ?? []).map(name => ["--scenario", name]),
    ...(target.settings ?? []).map(setting => ["--setting", setting]),
    ...Object.entries(target.parameters ?? {}).map(([name, value]) => [
      "--param",
      `${name}=${typeof value === "number" ? decimal(value) : value}`,
    ]),
  ];
}

function curl(request: SubmissionRequest, lab: string, file: string): string {
  const { series, ...rest } = request;
  const send = (from: string) =>
    [
      "curl --fail-with-body --silent --show-error",
      '--header "Authorization: Bearer $WQLAB_TOKEN"',
      '--header "Content-Type: application/json"',
      `--data-binary @- ${quoted(`${lab}/api/v1/submissions`)}${from}`,
    ].join(" \\\n  ");
  if (!series?.mbox) return `${send(" <<'JSON'")}\n${JSON.stringify(request, null, 2)}\nJSON`;
  const program = `{series: {mbox: {text: .}}} + $request`;
  return [
    `jq --raw-input --slurp ${quoted(program)}`,
    `--argjson request ${quoted(JSON.stringify(rest))} ${quoted(file)} |`,
  ]
    .join(" \\\n  ")
    .concat("\n", send(""));
}

/** Format a number without exponent, since `wqlab --param` reads `1e-7` as text. */
function decimal(value: number): string {
  const text = String(value);
  if (!text.includes("e")) return text;
  return Number.isInteger(value) ? BigInt(value).toString() : value.toFixed(20).replace(/0+$/, "");
}

/** Return a file name that cannot be mistaken for an option or standard input. */
function safeFile(name: string): string {
  if (name === "") return "series.mbox";
  return name.startsWith("-") ? `./${name}` : name;
}

/** Quote a word for a POSIX shell. */
export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
