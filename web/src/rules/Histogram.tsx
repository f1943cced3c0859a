import type { RulePreview } from "../api/client";
import { Bars } from "../ui/Bars";
import { useMinute } from "../ui/now";
import { minuteTime } from "../ui/time";
import { number } from "../ui/words";
import styles from "./preview.module.css";
import { chartWords } from "./previewText";

/** Alerts over time, as small bars. */
export function Histogram({ preview }: { preview: RulePreview }) {
  const now = useMinute();
  const { buckets, from, to } = preview;
  const most = Math.max(0, ...buckets);
  return (
    <figure className={styles.chart}>
      <Bars values={buckets} label={chartWords(preview, now)} />
      <figcaption>
        <span>{minuteTime(from, now)}</span>
        <span>{most > 0 && `highest bar ${number(most)}`}</span>
        <span>{minuteTime(to, now)}</span>
      </figcaption>
    </figure>
  );
}
