import { reasonOf } from "../api/errors";
import { TryAgain } from "../ui/TryAgain";
import styles from "./system.module.css";

/** What could not be read, within a page of which the rest can. */
export function Unknown({ what, error, onRetry }: { what: string; error: unknown; onRetry: () => unknown }) {
  return (
    <p className={styles.unknown} role="alert">
      {what} {reasonOf(error)}
      <TryAgain look="quiet" onRetry={onRetry} />
    </p>
  );
}
