import { reasonOf } from "../api/errors";
import { TryAgain } from "../ui/TryAgain";
import styles from "./system.module.css";

/** A part of a page that could not be loaded, while the others could. */
export function Unknown({ what, error, onRetry }: { what: string; error: unknown; onRetry: () => unknown }) {
  return (
    <p className={styles.unknown} role="alert">
      {what} {reasonOf(error)}
      <TryAgain look="quiet" onRetry={onRetry} />
    </p>
  );
}
