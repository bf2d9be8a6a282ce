import { expect, test } from "vitest";
import { toYaml } from "./yaml";

test("text that YAML would read as something else is quoted", () => {
  const fields = {
    plain: "kernel/workqueue.c",
    time: "22:00",
    sum: "12",
    answer: "no",
    switch: "On",
    nothing: "null",
    domain: "@example.org",
    pattern: "*",
    words: "wq: fix",
    sentence: "series that ask",
    comment: "series #1",
    quote: 'say "less"\u0085',
    empty: "",
    y: true,
  };
  expect(toYaml(fields)).toBe(
    [
      "plain: kernel/workqueue.c",
      'time: "22:00"',
      'sum: "12"',
      'answer: "no"',
      'switch: "On"',
      'nothing: "null"',
      'domain: "@example.org"',
      'pattern: "*"',
      'words: "wq: fix"',
      "sentence: series that ask",
      'comment: "series #1"',
      'quote: "say \\"less\\"\\u0085"',
      'empty: ""',
      '"y": true\n',
    ].join("\n"),
  );
});

test("a list has one line, or one line for each entry if that is too long", () => {
  expect(toYaml({ few: ["a", "b: c"], hours: [{ begins: "22:00", ends: "06:00" }], map: { jobs: 32 } })).toBe(
    'few: [a, "b: c"]\nhours: [{begins: "22:00", ends: "06:00"}]\nmap: {jobs: 32}\n',
  );
  const long = ["a".repeat(60), "b".repeat(60)];
  expect(toYaml({ long })).toBe(`long:\n  - ${long[0]}\n  - ${long[1]}\n`);
});
