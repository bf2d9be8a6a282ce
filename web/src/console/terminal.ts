/** xterm.js, made to work under the page's policy. Import it from a lazily loaded module only. */
import { type ITerminalOptions, Terminal } from "@xterm/xterm";
import "@xterm/xterm/css/xterm.css";
import { adoptSheet } from "@/lib/adoptedStyles";

/** A terminal that reads like the page: its colours from the tokens, nothing to type into. `dispose()` drops its styles. */
export function makeTerminal(options: ITerminalOptions = {}): Terminal {
  const { document, drop } = documentWithoutStyleElements();
  const style = getComputedStyle(window.document.documentElement);
  const probe = window.document.createElement("span");
  window.document.body.append(probe);
  const colour = (token: string) => {
    probe.style.color = `var(${token})`;
    return getComputedStyle(probe).color;
  };
  const terminal = new Terminal({
    fontFamily: style.getPropertyValue("--mono"),
    fontSize: 13,
    convertEol: true,
    disableStdin: true,
    cursorStyle: "bar",
    cursorInactiveStyle: "none",
    screenReaderMode: true,
    scrollback: 200_000,
    ...options,
    documentOverride: document,
    theme: {
      background: colour("--surface"),
      foreground: colour("--ink"),
      selectionBackground: colour("--same-ground"),
      red: colour("--bad"),
      green: colour("--good"),
      yellow: colour("--unsure"),
      blue: colour("--arm-a"),
      ...options.theme,
    },
  });
  probe.remove();
  const dispose = terminal.dispose.bind(terminal);
  terminal.dispose = () => {
    dispose();
    drop();
  };
  return terminal;
}

/** The document as xterm.js sees it: a `style` element it makes is a place holder whose text goes to an adopted sheet. */
function documentWithoutStyleElements() {
  const sheets: ReturnType<typeof adoptSheet>[] = [];
  const make = (name: string, options?: ElementCreationOptions) => {
    const element = window.document.createElement(name, options);
    if (name !== "style") return element;
    const sheet = adoptSheet();
    sheets.push(sheet);
    Object.defineProperty(element, "textContent", { set: (css: string) => sheet.set(css), get: () => "" });
    return element;
  };
  const document = new Proxy(window.document, {
    get(target, name) {
      if (name === "createElement") return make;
      const value = Reflect.get(target, name, target) as unknown;
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  return {
    document,
    drop: () => {
      for (const sheet of sheets) sheet.drop();
    },
  };
}
