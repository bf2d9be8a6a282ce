import {
  createTheme,
  defaultVariantColorsResolver,
  localStorageColorSchemeManager,
  MantineProvider,
  useMantineColorScheme,
} from "@mantine/core";
import type { ReactNode } from "react";

/** Uses the local storage key that public/theme.js reads before the first paint. */
const colorSchemeManager = localStorageColorSchemeManager({ key: "wqlab-theme" });

const theme = createTheme({
  // White text has enough contrast on a filled button in the light theme only.
  variantColorResolver: input => {
    const colors = defaultVariantColorsResolver(input);
    return input.variant === "filled" ? { ...colors, color: "var(--on-accent)" } : colors;
  },
});

/**
 * Mantine provider without injected styles: the content security policy allows style sheets only, so Mantine's
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

/** The selected theme and its setter; `auto` follows the system. */
export function useThemeChoice(): [ThemeChoice, (choice: ThemeChoice) => void] {
  // Otherwise Mantine injects a style element to suspend transitions, which the content security policy refuses.
  const { colorScheme, setColorScheme } = useMantineColorScheme({ keepTransitions: true });
  return [colorScheme, setColorScheme];
}
