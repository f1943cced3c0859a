import { reasonOf } from "../api/errors";
import { Button } from "../ui/Button";
import styles from "./system.module.css";

/** What could not be read, within a page of which the rest can. */
export function Unknown({ what, error, onRetry }: { what: string; error: unknown; onRetry: () => void }) {
  return (
    <p className={styles.unknown} role="alert">
      {what} {reasonOf(error)}
      <Button look="quiet" onClick={onRetry}>
        Try again
      </Button>
    </p>
  );
}
