/** Parse a parameter like `wqlab --param`: `5` and `0.5` are numbers, `32k`, `1e3` and `007` are text. */
export function numberOrText(text: string): string | number {
  return /^-?(0|[1-9]\d*)(\.\d+)?$/.test(text) && text !== "-0" ? Number(text) : text;
}
