/**
 * What a device printed, as a log shows it. A console is submitted data: it may ask a terminal to clear the screen, move
 * about, or change its title. Colours stay, everything else that steers is taken out, so that nothing that was printed
 * gets lost and each line feed is one line, whoever shows it.
 */

/** A whole escape sequence: CSI, OSC, the other strings, the short ones. None goes on over a line feed. */
const SEQUENCE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  /\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)|[PX^_][^\x1b\n]*\x1b\\|[ -/]+[0-~]|[0-Z\\^-~])/g;
/** One that may still be completed by what comes next. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const BEGUN = /\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b\n]*\x1b?|[ -/]*)$/;
const LONGEST_SEQUENCE = 256;
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const COLOUR = /^\x1b\[[0-9;]*m$/;
/** One of 16 million colours: unreadable in one theme or the other, and it takes a style of its own. */
const OWN_COLOUR = /(?:^|[[;])(?:[34]8;2|58)(?:;|m)/;
/** Controls but backspace, tab, line feed, carriage return and escape; C1 ones would feed lines too. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROL = /[\0-\x07\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f]/g;
/** An escape that belongs to nothing known. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const STRAY_ESCAPE = /\x1b(?!\[[0-9;]*m)/g;
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const COLOURS = /\x1b\[[0-9;]*m/g;

function keeps(sequence: string): boolean {
  return COLOUR.test(sequence) && !OWN_COLOUR.test(sequence);
}

/** Decodes a console that comes in pieces. The text it gives has colours, tabs, carriage returns and backspaces left. */
export class Printable {
  private readonly decoder = new TextDecoder("utf-8");
  private held = "";

  /** The text for the next bytes; what may be half a character or half a sequence is held for the next call. */
  next(bytes: Uint8Array): string {
    return this.filter(this.decoder.decode(bytes, { stream: true }), false);
  }

  /** What was held, when nothing more comes. */
  end(): string {
    return this.filter(this.decoder.decode(), true);
  }

  private filter(arrived: string, last: boolean): string {
    let text = this.held + arrived;
    this.held = "";
    const begun = last ? null : BEGUN.exec(text.slice(-LONGEST_SEQUENCE));
    if (begun) {
      this.held = begun[0];
      text = text.slice(0, -this.held.length);
    }
    return text
      .replace(SEQUENCE, sequence => (keeps(sequence) ? sequence : ""))
      .replace(STRAY_ESCAPE, "")
      .replace(CONTROL, "");
  }
}

/** A line as it stands in the end: without colours, what was overwritten by carriage return and backspace gone. */
export function settled(line: string): string {
  const plain = line.replace(COLOURS, "").replace(/\r+$/, "");
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
