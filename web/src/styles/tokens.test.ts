import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

const css = readFileSync("src/styles/tokens.css", "utf8");
const tokens = new Map(
  [...css.matchAll(/--([a-z-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)/g)].map(
    ([, name, light, dark]) => [name, { light, dark }] as const,
  ),
);

/** Relative luminance as defined by WCAG 2.2. */
function luminance(hex: string): number {
  const [r, g, b] = [1, 3, 5].map(at => {
    const channel = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(one: string, other: string, theme: "light" | "dark"): number {
  const [a, b] = [one, other].map(name => {
    const token = tokens.get(name);
    if (!token) throw new Error(`tokens.css does not define --${name}`);
    return luminance(token[theme] as string);
  }) as [number, number];
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}

const GROUNDS = ["paper", "surface", "raised", "sunken"];
const TEXTS = ["ink", "muted", "link", "arm-a", "arm-b", "good", "bad", "same", "unsure", "none"];
const ON_OWN_GROUND = ["arm-a", "arm-b", "good", "bad", "same", "unsure", "none"];

for (const theme of ["light", "dark"] as const) {
  test.each(TEXTS.flatMap(text => GROUNDS.map(ground => [text, ground])))(
    `${theme}: %s on %s has a contrast of 4.5:1`,
    (text, ground) => {
      expect(contrast(text as string, ground as string, theme)).toBeGreaterThanOrEqual(4.5);
    },
  );

  test.each(ON_OWN_GROUND)(`${theme}: %s has a contrast of 4.5:1 on its own background`, name => {
    expect(contrast(name, `${name}-ground`, theme)).toBeGreaterThanOrEqual(4.5);
    expect(contrast("ink", `${name}-ground`, theme)).toBeGreaterThanOrEqual(4.5);
  });

  test(`${theme}: buttons, controls and focus have enough contrast`, () => {
    expect(contrast("on-accent", "accent", theme)).toBeGreaterThanOrEqual(4.5);
    for (const ground of GROUNDS) {
      expect(contrast("line-strong", ground, theme)).toBeGreaterThanOrEqual(3);
      expect(contrast("focus", ground, theme)).toBeGreaterThanOrEqual(3);
    }
  });
}
