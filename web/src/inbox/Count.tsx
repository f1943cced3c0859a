import type { GroupBy, WindowCount } from "../api/client";
import { Field, Fields } from "../ui/MasterDetail";
import { period } from "../ui/time";
import { counted, number } from "../ui/words";
import styles from "./AlertDetail.module.css";
import { countWords, ratio, thresholdWords } from "./headline";
import { Section } from "./Section";

/** Notes on a window alert are on its rule and group. The alert of one exchange has those of its issue, which it links to. */
export function noteReaders({ groupBy }: WindowCount): string {
  return `Shown whenever this rule fires${groupBy ? " for this group" : ""}, to everyone who can see the alert.`;
}

const groupNames: Record<Exclude<GroupBy, "ATTRIBUTE">, string> = {
  ROUTE: "Route",
  APPLICATION: "Application",
  ENVIRONMENT: "Environment",
  ERROR_TYPE: "Error type",
};

function groupName({ groupBy, groupByAttribute }: WindowCount): string {
  return groupBy && groupBy !== "ATTRIBUTE" ? groupNames[groupBy] : (groupByAttribute ?? "");
}

/** "30 of 120 exchanges match", "9 of 120 exchanges reached the threshold". */
function volumeWords({ fireMode, observed, volume }: WindowCount): string {
  return `${number(observed)} of ${counted(volume ?? 0, "exchange")} ${fireMode === "RATIO_IN_WINDOW" ? "match" : "reached the threshold"}`;
}

/** What a window rule has counted or measured. */
export function Count({ count }: { count: WindowCount }) {
  return (
    <Section title={`${count.value === undefined ? "Count" : "Value"} at the last change`}>
      <p className={styles.count}>{countWords(count)}</p>
      <Fields>
        {count.groupBy && (
          <Field name={groupName(count)}>
            {count.group || (count.groupBy === "ATTRIBUTE" ? "without a value" : "without a name")}
          </Field>
        )}
        <Field name="Threshold">{thresholdWords(count)}</Field>
        {count.volume !== undefined && <Field name="Measured">{volumeWords(count)}</Field>}
        <Field name="Window">{period(count.windowSeconds)}</Field>
        {count.shortWindowSeconds !== undefined && (
          <Field name="Short window">
            {ratio(count.shortValue ?? 0, count.threshold)} within {period(count.shortWindowSeconds)}
          </Field>
        )}
      </Fields>
    </Section>
  );
}
