import { expect, test } from "vitest";
import { recogniseSeries } from "./series";

test.each([
  ["https://lore.kernel.org/r/20260105-my-series-v1-0-abc@kernel.org"],
  ["https://lore.kernel.org/all/20260105-my-series-v1-0-abc@kernel.org/"],
  ["https://lore.kernel.org/all/20260105-abc%40kernel.org/T/#u"],
  ["<20260105-my-series-v1-0-abc@kernel.org>"],
  ["  20260105-my-series-v1-0-abc@kernel.org "],
])("%s is a mail", text => {
  expect(recogniseSeries(text)).toEqual({ source: "thread", message: text.trim() });
});

test.each([
  ["12345"],
  ["https://patchwork.example.org/project/linux-wq/list/?series=12345"],
  ["https://patchwork.example.org/project/linux-wq/list/?state=*&series=12345&archive=both"],
  ["https://patchwork.example.org/api/1.3/series/12345/"],
  ["https://patchwork.example.org/series/12345/mbox/"],
])("%s is a series of a Patchwork", text => {
  expect(recogniseSeries(text)).toEqual({ source: "thread", message: text });
});

test.each([
  ["https://git.example.org/list/?series=0", "https://git.example.org/list/?series=0", ""],
  ["https://git.example.org/linux.git", "https://git.example.org/linux.git", ""],
  ["https://git.example.org/linux.git topic", "https://git.example.org/linux.git", "topic"],
  ["git://git.example.org/linux#wq/faster", "git://git.example.org/linux", "wq/faster"],
  ["https://user@git.example.org/linux.git topic", "https://user@git.example.org/linux.git", "topic"],
  ["", "", ""],
])("%s is a repository", (text, git, ref) => {
  expect(recogniseSeries(text)).toEqual({ source: "git", git, ref });
});
