import type { RulePreview } from "../api/client";
import { useNow } from "../ui/now";
import { shortTime } from "../ui/time";
import styles from "./preview.module.css";
import { chartWords } from "./previewText";

const width = 300;
const height = 56;

/** Alerts over time, as small bars. */
export function Histogram({ preview }: { preview: RulePreview }) {
  const now = useNow();
  const { buckets, from, to } = preview;
  const most = Math.max(1, ...buckets);
  const step = width / Math.max(1, buckets.length);
  const bars = buckets.map((alerts, index) => ({ alerts, x: index * step }));
  return (
    <figure className={styles.chart}>
      <svg viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" role="img" aria-label={chartWords(preview)}>
        {bars
          .filter(({ alerts }) => alerts > 0)
          .map(({ alerts, x }) => {
            // One alert is seen beside a thousand.
            const tall = Math.max(2, (alerts / most) * height);
            return <rect key={x} x={x} y={height - tall} width={Math.max(0.5, step - 0.6)} height={tall} />;
          })}
      </svg>
      <figcaption>
        <span>{shortTime(from, now).slice(0, -4)}</span>
        <span>{buckets.some((alerts) => alerts > 0) && `highest bar ${most.toLocaleString("en")}`}</span>
        <span>{shortTime(to, now).slice(0, -4)}</span>
      </figcaption>
    </figure>
  );
}
