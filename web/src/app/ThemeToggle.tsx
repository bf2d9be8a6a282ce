import classes from "./ThemeToggle.module.css";
import { type ThemeChoice, useThemeChoice } from "./theme";

const NEXT: Record<ThemeChoice, ThemeChoice> = { auto: "light", light: "dark", dark: "auto" };
const NAME: Record<ThemeChoice, string> = { auto: "system", light: "light", dark: "dark" };

/** Button that cycles through the three themes; its accessible name contains the current theme. */
export function ThemeToggle() {
  const [choice, choose] = useThemeChoice();
  const label = `Theme: ${NAME[choice]}. Switch to ${NAME[NEXT[choice]]}.`;
  return (
    <button
      type="button"
      className={classes.button}
      aria-label={label}
      title={label}
      onClick={() => choose(NEXT[choice])}
    >
      <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
        <circle cx="8" cy="8" r="6.25" fill="none" stroke="currentColor" strokeWidth="1.5" />
        {choice === "auto" && <path d="M8 2a6 6 0 0 1 0 12z" fill="currentColor" />}
        {choice === "dark" && <circle cx="8" cy="8" r="6" fill="currentColor" />}
        {choice === "light" && <circle cx="8" cy="8" r="2" fill="currentColor" />}
      </svg>
    </button>
  );
}
