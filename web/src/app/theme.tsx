import {
  createTheme,
  defaultVariantColorsResolver,
  localStorageColorSchemeManager,
  MantineProvider,
  useMantineColorScheme,
} from "@mantine/core";
import type { ReactNode } from "react";

/** The key that public/theme.js reads before the first paint. */
const colorSchemeManager = localStorageColorSchemeManager({ key: "wqlab-theme" });

const theme = createTheme({
  // White reads on a filled button in the light theme only.
  variantColorResolver: input => {
    const colors = defaultVariantColorsResolver(input);
    return input.variant === "filled" ? { ...colors, color: "var(--on-accent)" } : colors;
  },
});

/**
 * Mantine without the styles that it would write into the page: the page's policy allows style sheets only, so its
 * variables are in styles/mantine.css.
 */
export function Theme({ children }: { children: ReactNode }) {
  return (
    <MantineProvider
      theme={theme}
      colorSchemeManager={colorSchemeManager}
      defaultColorScheme="auto"
      withCssVariables={false}
      withGlobalClasses={false}
      withStaticClasses={false}
    >
      {children}
    </MantineProvider>
  );
}

export type ThemeChoice = "auto" | "light" | "dark";

/** What the reader chose, and how to choose: `auto` is what the system says. */
export function useThemeChoice(): [ThemeChoice, (choice: ThemeChoice) => void] {
  // Otherwise Mantine writes a style element to hold transitions back, which the page's policy refuses.
  const { colorScheme, setColorScheme } = useMantineColorScheme({ keepTransitions: true });
  return [colorScheme, setColorScheme];
}
