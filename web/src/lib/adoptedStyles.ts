/**
 * Constructed style sheets, for libraries that would inject `style` elements. The content security policy refuses
 * `style` elements but allows sheets constructed by script.
 */
export interface AdoptedSheet {
  set(css: string): void;
  remove(): void;
}

/** Add a style sheet to the document. */
export function adoptStyleSheet(css = ""): AdoptedSheet {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(css);
  document.adoptedStyleSheets.push(sheet);
  return {
    set: text => sheet.replaceSync(text),
    remove: () => {
      document.adoptedStyleSheets = document.adoptedStyleSheets.filter(each => each !== sheet);
    },
  };
}
