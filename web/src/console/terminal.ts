/** xterm.js, made to work under the page's policy. Import it from a lazily loaded module only. */
import { type ITerminalOptions, type ITheme, Terminal } from "@xterm/xterm";
import "@xterm/xterm/css/xterm.css";
import { adoptSheet } from "@/lib/adoptedStyles";

/** Consoles are kept by the server up to a size that stays below this in all but absurd cases. */
const SCROLLBACK_ROWS = 200_000;

/**
 * A terminal that reads like the page: its colours from the tokens, in either theme, nothing to type into. It does not
 * speak to screen readers: whoever uses it shows the same lines as text beside it. `dispose()` drops its styles.
 */
export function makeTerminal(options: ITerminalOptions = {}): Terminal {
  const { document, make, drop } = documentWithoutStyleElements();
  const terminal = new Terminal({
    fontFamily: getComputedStyle(window.document.documentElement).getPropertyValue("--mono"),
    fontSize: 12,
    lineHeight: 1.25,
    convertEol: true,
    disableStdin: true,
    cursorStyle: "bar",
    cursorInactiveStyle: "none",
    scrollback: SCROLLBACK_ROWS,
    ...options,
    documentOverride: document,
    theme: { ...coloursNow(), ...options.theme },
  });
  const forget = whenThemeChanges(() => {
    terminal.options.theme = { ...coloursNow(), ...options.theme };
  });
  const open = terminal.open.bind(terminal);
  terminal.open = parent => {
    // xterm.js 6.0 gives its viewport the window's document, whatever it was told to use.
    window.document.createElement = make as typeof window.document.createElement;
    try {
      open(parent);
    } finally {
      Reflect.deleteProperty(window.document, "createElement");
    }
  };
  const dispose = terminal.dispose.bind(terminal);
  terminal.dispose = () => {
    forget();
    dispose();
    drop();
  };
  return terminal;
}

function coloursNow(): ITheme {
  const probe = window.document.createElement("span");
  window.document.body.append(probe);
  const colour = (token: string) => {
    probe.style.color = `var(${token})`;
    return getComputedStyle(probe).color;
  };
  const theme: ITheme = {
    background: colour("--surface"),
    foreground: colour("--ink"),
    cursor: colour("--surface"),
    selectionBackground: colour("--same-ground"),
    selectionInactiveBackground: colour("--same-ground"),
    scrollbarSliderBackground: colour("--line"),
    scrollbarSliderHoverBackground: colour("--line-strong"),
    scrollbarSliderActiveBackground: colour("--line-strong"),
    // Each is a colour for text on every ground, in either theme.
    black: colour("--muted"),
    red: colour("--bad"),
    green: colour("--good"),
    yellow: colour("--unsure"),
    blue: colour("--arm-a"),
    magenta: colour("--arm-b"),
    cyan: colour("--same"),
    white: colour("--ink"),
    brightBlack: colour("--muted"),
    brightRed: colour("--bad"),
    brightGreen: colour("--good"),
    brightYellow: colour("--unsure"),
    brightBlue: colour("--arm-a"),
    brightMagenta: colour("--arm-b"),
    brightCyan: colour("--same"),
    brightWhite: colour("--ink"),
  };
  probe.remove();
  return theme;
}

/** The reader's choice is an attribute of the root element, the system's a media query. */
function whenThemeChanges(changed: () => void): () => void {
  const observer = new MutationObserver(changed);
  observer.observe(window.document.documentElement, { attributeFilter: ["data-mantine-color-scheme"] });
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", changed);
  return () => {
    observer.disconnect();
    system.removeEventListener("change", changed);
  };
}

/** The document as xterm.js sees it: where it makes a `style` element it gets a place holder, whose text goes to an adopted sheet. */
function documentWithoutStyleElements() {
  const sheets: ReturnType<typeof adoptSheet>[] = [];
  const make = (name: string, options?: ElementCreationOptions) => {
    const style = name === "style";
    const element = Document.prototype.createElement.call(window.document, style ? "span" : name, options);
    if (!style) return element;
    const sheet = adoptSheet();
    sheets.push(sheet);
    element.hidden = true;
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
    make,
    drop: () => {
      for (const sheet of sheets) sheet.drop();
    },
  };
}

/**
 * The policy refuses a `style` attribute, not what a script sets of an element's style. xterm.js writes the attribute of
 * spans that it makes with the window's document, for text that is selected.
 */
HTMLSpanElement.prototype.setAttribute = function setAttributeByScript(name: string, value: string) {
  if (name === "style") this.style.cssText = value;
  else Element.prototype.setAttribute.call(this, name, value);
};
