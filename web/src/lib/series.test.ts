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
  ["https://git.example.org/linux.git", "https://git.example.org/linux.git", ""],
  ["https://git.example.org/linux.git topic", "https://git.example.org/linux.git", "topic"],
  ["git://git.example.org/linux#wq/faster", "git://git.example.org/linux", "wq/faster"],
  ["https://user@git.example.org/linux.git topic", "https://user@git.example.org/linux.git", "topic"],
  ["", "", ""],
])("%s is a repository", (text, git, ref) => {
  expect(recogniseSeries(text)).toEqual({ source: "git", git, ref });
});
