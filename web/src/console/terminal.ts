/** xterm.js adapted to the content security policy. Import it only from a lazily loaded module. */
import { type ITerminalOptions, type ITheme, Terminal } from "@xterm/xterm";
import "@xterm/xterm/css/xterm.css";
import { adoptStyleSheet } from "@/lib/adoptedStyles";

/** The server's size limit for consoles keeps nearly all of them below this number of rows. */
const SCROLLBACK_ROWS = 200_000;

/**
 * Create a read-only terminal with the page's colours in both themes. It is not accessible to screen readers: offer the
 * same text in another view. `dispose()` also removes its styles.
 */
export function makeTerminal(options: ITerminalOptions = {}): Terminal {
  const { document, createElement, removeStyles } = documentWithoutStyleElements();
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
    theme: { ...currentTheme(), ...options.theme },
  });
  const unsubscribe = onThemeChange(() => {
    terminal.options.theme = { ...currentTheme(), ...options.theme };
  });
  const open = terminal.open.bind(terminal);
  terminal.open = parent => {
    // xterm.js 6.0 creates its viewport with the window's document and ignores documentOverride there.
    window.document.createElement = createElement as typeof window.document.createElement;
    try {
      open(parent);
    } finally {
      Reflect.deleteProperty(window.document, "createElement");
    }
  };
  const dispose = terminal.dispose.bind(terminal);
  terminal.dispose = () => {
    unsubscribe();
    dispose();
    removeStyles();
  };
  return terminal;
}

function currentTheme(): ITheme {
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
    // All of these tokens have enough contrast as text on every background, in both themes.
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

/** Call `changed` when the theme changes: an attribute of the root element, or the system's media query. */
function onThemeChange(changed: () => void): () => void {
  const observer = new MutationObserver(changed);
  observer.observe(window.document.documentElement, { attributeFilter: ["data-mantine-color-scheme"] });
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", changed);
  return () => {
    observer.disconnect();
    system.removeEventListener("change", changed);
  };
}

/** Return a document proxy whose `style` elements are placeholders, with their text in adopted style sheets. */
function documentWithoutStyleElements() {
  const sheets: ReturnType<typeof adoptStyleSheet>[] = [];
  const createElement = (name: string, options?: ElementCreationOptions) => {
    const style = name === "style";
    const element = Document.prototype.createElement.call(window.document, style ? "span" : name, options);
    if (!style) return element;
    const sheet = adoptStyleSheet();
    sheets.push(sheet);
    element.hidden = true;
    Object.defineProperty(element, "textContent", { set: (css: string) => sheet.set(css), get: () => "" });
    return element;
  };
  const document = new Proxy(window.document, {
    get(target, name) {
      if (name === "createElement") return createElement;
      const value = Reflect.get(target, name, target) as unknown;
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  return {
    document,
    createElement,
    removeStyles: () => {
      for (const sheet of sheets) sheet.remove();
    },
  };
}

/**
 * The content security policy refuses `style` attributes but allows scripts to set an element's style. xterm.js sets
 * the attribute on spans that it creates with the window's document, for selected text.
 */
HTMLSpanElement.prototype.setAttribute = function setAttributeWithoutInlineStyle(
  name: string,
  value: string,
) {
  if (name === "style") this.style.cssText = value;
  else Element.prototype.setAttribute.call(this, name, value);
};
