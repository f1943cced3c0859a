import type { Attempt } from "../api/client";
import styles from "./deliveries.module.css";
import { attemptSign, attemptsWord, verdictsWord } from "./words";

interface Props {
  /** How the latest attempts ended, oldest first. */
  verdicts: readonly Attempt["verdict"][];
  /** How many there were in all. */
  count: number;
  /** Whether there will be no more. */
  settled: boolean;
}

/** Attempts as one line of signs, with words for those who do not see them. */
export function AttemptMarks({ verdicts, count, settled }: Props) {
  if (count === 0) return <span className={styles.untried}>{attemptsWord(0, settled)}</span>;
  const first = count - verdicts.length;
  const words = `${attemptsWord(count, settled)}: ${verdictsWord(verdicts)}`;
  return (
    <span className={styles.signs} role="img" aria-label={words} title={words}>
      {first > 0 && <span className={styles.open}>+{first}</span>}
      {verdicts.map((verdict, index) => {
        const { sign, tone } = attemptSign(verdict);
        return (
          // biome-ignore lint/suspicious/noArrayIndexKey: an attempt is its place among the others
          <span key={index} className={styles[tone]}>
            {sign}
          </span>
        );
      })}
    </span>
  );
}
