import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { SubmissionRequest } from "@/api/types";
import { commandsOf, quoted } from "./commands";

const place = { lab: "http://lab.example:8750", file: "" };
const request: SubmissionRequest = {
  series: { git: { url: "https://git.example/it's here.git", ref: "mine" } },
  tree: "linux-6.12",
  targets: [
    {
      plan: "crypt",
      device_type: "ryzen",
      settings: ["scope=cache,strict=1"],
      parameters: { ios: 64, tiny: 1e-7, large: 1e21, verify: "sha512; rm -rf $HOME `x`" },
    },
    { plan: "fsync", device_type: "xeon" },
  ],
  blocks: 3,
  priority: 70,
  recipe: "debug",
};

/** Run a command in a shell with stubs for `wqlab`, `curl` and `jq` that print their arguments or input. */
function run(text: string, stubs: string, files: Record<string, string> = {}): string {
  const folder = mkdtempSync(join(tmpdir(), "wqlab-commands-"));
  try {
    for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
    return execFileSync("sh", ["-c", `${stubs}\n${text}`], { cwd: folder, encoding: "utf8" });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const WORDS = "() { for word; do printf '%s\\n' \"$word\"; done; }";
const command = (name: string, of = request, at = place) =>
  commandsOf(of, at).find(each => each.name === name)?.text as string;

test("a shell parses the wqlab command into the request's values", () => {
  expect(run(command("wqlab"), `wqlab${WORDS}`).trimEnd().split("\n")).toEqual([
    ...["--url", "http://lab.example:8750", "submit"],
    ...["--git", "https://git.example/it's here.git", "--ref", "mine", "--tree", "linux-6.12"],
    ...["--target", "crypt@ryzen", "--setting", "scope=cache,strict=1", "--param", "ios=64"],
    ...["--param", "tiny=0.0000001", "--param", "large=1000000000000000000000"],
    ...["--param", "verify=sha512; rm -rf $HOME `x`"],
    ...["--target", "fsync@xeon", "--blocks", "3", "--priority", "70", "--recipe", "debug", "--wait"],
  ]);
});

test("looks are an option of the command", () => {
  const looked = { ...request, blocks: null, looks: [6, 10, 16] };
  expect(command("wqlab", looked)).toContain("--looks 6,10,16");
});

test("traced boots are left out by an option of the command", () => {
  expect(command("wqlab", { ...request, trace: false })).toContain("--no-trace");
  expect(command("wqlab", { ...request, trace: true })).not.toContain("--no-trace");
});

test("curl receives the exact request", () => {
  expect(JSON.parse(run(command("curl"), "curl() { cat; }"))).toEqual(request);
});

test("a mailed series is named by its id", () => {
  const thread = { message_id: "it's@kernel.example", revision: 2 };
  const found = run(command("wqlab", { ...request, series: { thread } }), `wqlab${WORDS}`);
  expect(found).toContain("--message-id\nit's@kernel.example\n--revision\n2\n");
});

test("both commands read an mbox from its file", () => {
  const text = 'From a\nSubject: it\'s $HOME \\n "quoted"\n\ndiff --git a/x b/x\n';
  const mailed = { ...request, series: { mbox: { text } } };
  const at = { ...place, file: "-it's v2.mbox" };
  expect(run(command("wqlab", mailed, at), `wqlab${WORDS}`)).toContain("--mbox\n./-it's v2.mbox\n");
  const { series: _, ...rest } = request;
  const words = run(command("curl", mailed, at), `jq${WORDS}\ncurl() { cat; }`)
    .trimEnd()
    .split("\n");
  expect(words.slice(0, 3)).toEqual(["--raw-input", "--slurp", "{series: {mbox: {text: .}}} + $request"]);
  expect(JSON.parse(words[5] as string)).toEqual(rest);
  expect(words[6]).toBe("./-it's v2.mbox");
});

test("a settings study omits the series and default options", () => {
  const plain = { series: null, tree: "linux", targets: request.targets.slice(1), priority: 50 };
  expect(command("wqlab", plain)).toBe(
    [
      "wqlab --url http://lab.example:8750 submit",
      "--settings-only",
      "--tree linux",
      "--target fsync@xeon",
      "--wait",
    ].join(" \\\n  "),
  );
});

test("a walk is one option", () => {
  expect(command("wqlab", { ...request, walk: true })).toContain("--walk --wait");
});

test("a sweep is one line, and its targets are plans alone", () => {
  const swept: SubmissionRequest = {
    series: null,
    tree: "linux",
    targets: [{ plan: "fsync" }],
    sweep: { vary: "l3", values: [1, 2, 4], base: { cpus: 16, nodes: null } },
  };
  expect(command("wqlab", swept)).toContain(
    "--target fsync \\\n  --sweep l3=1,2,4 --sweep-base cpus=16 \\\n  --wait",
  );
  expect(command("wqlab", { ...swept, sweep: { vary: "cpus", values: [8, 16] } })).toContain(
    "--sweep cpus=8,16 \\\n",
  );
  expect(command("wqlab", { ...swept, sweep: { vary: "l3", values: [1, 2], costs: "grace" } })).toContain(
    "--sweep l3=1,2 --sweep-costs grace \\\n",
  );
  expect(JSON.parse(run(command("curl", swept), "curl() { cat; }"))).toEqual(swept);
});

test.each([
  ["a=b,c=1@x:/y", "a=b,c=1@x:/y"],
  ["it's", "'it'\\''s'"],
  ["", "''"],
  ["a b", "'a b'"],
  ["$x", "'$x'"],
  ["a\nb", "'a\nb'"],
])("%j is quoted as %j", (word, expected) => {
  expect(quoted(word)).toBe(expected);
});
