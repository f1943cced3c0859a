import { useQuery } from "@tanstack/react-query";
import { alertActivity } from "../api/activity";
import { Bars } from "../ui/Bars";
import table from "../ui/table.module.css";
import { number } from "../ui/words";
import styles from "./rules.module.css";

/** The alerts that a rule raised in the last hour: how many, and when. */
export function Raised({ ruleId, ruleName }: { ruleId: string; ruleName: string }) {
  const { data } = useQuery(alertActivity());
  const minutes = data?.rules.find((rule) => rule.ruleId === ruleId)?.buckets;
  const total = minutes?.reduce((sum, count) => sum + count, 0) ?? 0;
  if (!data) return <span className={table.quiet}>…</span>;
  if (!minutes && !data.complete) {
    return (
      <span className={table.quiet} title="Only the newest alerts of the last hour are counted">
        Not counted
      </span>
    );
  }
  if (!minutes) {
    return (
      <span className={table.quiet}>
        None<span className={table.word}> raised in the last hour</span>
      </span>
    );
  }
  // If there are very many, the oldest are not counted.
  const counted = data.complete ? number(total) : `${number(total)}+`;
  return (
    <span className={styles.raised} title="In the last hour, by minute">
      <Bars values={minutes} label={`${ruleName} raised ${counted} in the last hour, by minute`} small />
      <span>{counted} raised</span>
      <span className={styles.scale}>max {number(Math.max(...minutes))}/min</span>
    </span>
  );
}
