import styles from "./Bars.module.css";

const width = 300;
const height = 56;

interface Props {
  values: readonly number[];
  /** The text of the chart for people who do not see it. */
  label: string;
  /** How many bars there is at least room for; fewer are on the right. */
  slots?: number;
  /** The least value of the full height, so that a small number does not look large. */
  full?: number;
  /** One line of a table, and not a separate chart. */
  small?: boolean;
}

/** Numbers over time as small bars, oldest first. A small value stays visible next to large ones. */
export function Bars({ values, label, slots = 0, full = 1, small = false }: Props) {
  const most = Math.max(full, ...values);
  const room = Math.max(1, slots, values.length);
  const step = width / room;
  const bars = values.map((value, index) => ({ value, x: (room - values.length + index) * step }));
  return (
    <svg
      className={small ? `${styles.bars} ${styles.small}` : styles.bars}
      viewBox={`0 0 ${width} ${height}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      {bars
        .filter(({ value }) => value > 0)
        .map(({ value, x }) => {
          const tall = Math.max(small ? 5 : 2, (value / most) * height);
          return <rect key={x} x={x} y={height - tall} width={Math.max(0.5, step - 0.6)} height={tall} />;
        })}
    </svg>
  );
}
