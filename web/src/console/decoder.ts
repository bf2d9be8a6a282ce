/**
 * Decoding of console output. A console is untrusted data: it may clear the screen, move the cursor or set the title.
 * Control sequences are removed, so that no output is lost and each line feed is one line.
 */

/** A complete escape sequence: CSI, OSC, other strings and short sequences. A line feed ends any of them. */
const SEQUENCE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the expression matches control characters
  /\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)|[PX^_][^\x1b\n]*\x1b\\|[ -/]+[0-~]|[0-Z\\^-~])/g;
/** An incomplete escape sequence, which the next bytes may complete. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the expression matches control characters
const INCOMPLETE_SEQUENCE = /\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b\n]*\x1b?|[ -/]*)$/;
const MAX_SEQUENCE_LENGTH = 256;
/** Control characters except backspace, tab, line feed and carriage return. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the expression matches control characters
const CONTROL = /[\0-\x07\x0b\x0c\x0e-\x1f\x7f-\x9f]/g;

/** Incremental decoder. Its text keeps tabs, carriage returns and backspaces. */
export class ConsoleDecoder {
  private readonly decoder = new TextDecoder("utf-8");
  private incomplete = "";

  /** Decode the next bytes; an incomplete character or sequence is kept for the next call. */
  decode(bytes: Uint8Array): string {
    return this.filter(this.decoder.decode(bytes, { stream: true }), false);
  }

  /** Return the rest of the text at the end of the input. */
  finish(): string {
    return this.filter(this.decoder.decode(), true);
  }

  private filter(arrived: string, last: boolean): string {
    let text = this.incomplete + arrived;
    this.incomplete = "";
    const incomplete = last ? null : INCOMPLETE_SEQUENCE.exec(text.slice(-MAX_SEQUENCE_LENGTH));
    if (incomplete) {
      this.incomplete = incomplete[0];
      text = text.slice(0, -this.incomplete.length);
    }
    return text.replace(SEQUENCE, "").replace(CONTROL, "");
  }
}

/** Return a line as finally displayed, with carriage returns and backspaces applied. */
export function finalText(line: string): string {
  const plain = line.replace(/\r+$/, "");
  if (!plain.includes("\r") && !plain.includes("\b")) return plain;
  const cells: string[] = [];
  let at = 0;
  for (const char of plain) {
    if (char === "\r") at = 0;
    else if (char === "\b") at = Math.max(0, at - 1);
    else {
      while (cells.length < at) cells.push(" ");
      cells[at] = char;
      at += 1;
    }
  }
  return cells.join("");
}
