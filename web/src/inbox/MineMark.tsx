import type { Alert } from "../api/client";
import { IconPerson } from "../ui/icons";
import styles from "./AlertRow.module.css";

/** That an alert is the reader's. A folded row says it of its newest alert. */
export function MineMark({ of }: { of: Alert }) {
  if (!of.mine) {
    return null;
  }
  return (
    <span className={styles.mine} title="Assigned to you, or its rule is for you or your team">
      <IconPerson size={13} stroke={2} aria-hidden="true" />
      <span className="visually-hidden"> yours</span>
    </span>
  );
}
