/**
 * Style sheets for what would write `style` elements, which the page's policy refuses. A constructed sheet is made by
 * script, like an element's `style` property, and no markup can do it; so the policy lets it be.
 */
export interface AdoptedSheet {
  set(css: string): void;
  drop(): void;
}

export function adoptSheet(css = ""): AdoptedSheet {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(css);
  document.adoptedStyleSheets.push(sheet);
  return {
    set: text => sheet.replaceSync(text),
    drop: () => {
      document.adoptedStyleSheets = document.adoptedStyleSheets.filter(each => each !== sheet);
    },
  };
}
