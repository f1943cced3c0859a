import type { ComponentProps } from "react";
import styles from "./Button.module.css";
import { singleKeys, useSetting } from "./setting";

type Look = "plain" | "primary" | "danger" | "quiet";

export function buttonClass(look: Look = "plain", iconOnly = false): string {
  return [styles.button, look === "plain" ? "" : styles[look], iconOnly ? styles.iconOnly : ""]
    .filter(Boolean)
    .join(" ");
}

interface Props extends ComponentProps<"button"> {
  look?: Look;
  iconOnly?: boolean;
  /** What it does is under way, and cannot be begun again. It stays enabled: a disabled button would lose the focus. */
  busy?: boolean;
}

export function Button({ look, iconOnly, busy = false, onClick, ...rest }: Props) {
  return (
    <button
      type="button"
      {...rest}
      aria-disabled={busy || undefined}
      onClick={busy ? (event) => event.preventDefault() : onClick}
      className={buttonClass(look, iconOnly)}
    />
  );
}

/** The key that does the same as the control it is in. */
export function Key({ children }: { children: string }) {
  if (useSetting(singleKeys) === "off") return null;
  return (
    <span className={styles.key} aria-hidden="true">
      {children}
    </span>
  );
}
