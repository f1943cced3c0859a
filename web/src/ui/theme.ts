import { createTheme, localStorageColorSchemeManager, type MantineColorScheme } from "@mantine/core";

/** Mantine provides behaviour; the look is in tokens.css and base.css. */
export const theme = createTheme({
  fontFamily: "var(--font-sans)",
  fontFamilyMonospace: "var(--font-mono)",
  fontSizes: { xs: "0.6875rem", sm: "0.8125rem", md: "0.875rem" },
  defaultRadius: 6,
  cursorType: "pointer",
  respectReducedMotion: true,
  // The options of a list exist only while it is open. Otherwise the lists would be the most
  // expensive part of a form.
  components: { Combobox: { defaultProps: { keepMounted: false } } },
});

/** public/theme.js finds the choice under this key before the first paint. */
export const colorScheme = localStorageColorSchemeManager({ key: "tocsin.theme" });

export const schemes: readonly MantineColorScheme[] = ["auto", "light", "dark"];

export const schemeWords = { auto: "Same as system", light: "Light", dark: "Dark" } as const satisfies Record<
  MantineColorScheme,
  string
>;
