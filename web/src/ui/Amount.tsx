import { Input, NativeSelect } from "@mantine/core";
import { type ReactNode, useId, useState } from "react";
import styles from "./form.module.css";

interface Unit {
  /** How many of the smallest unit it holds. */
  size: number;
  word: string;
}

interface Props {
  label: string;
  description: string;
  /** The smallest first, of size 1. */
  units: readonly [Unit, ...Unit[]];
  /** In the smallest unit; undefined when nothing that is a number stands there. */
  value: number | undefined;
  error: ReactNode;
  onChange: (value: number | undefined) => void;
}

/** A whole number of some unit, which the reader can choose. */
export function Amount({ label, description, units, value, error, onChange }: Props) {
  const id = useId();
  const [unit, setUnit] = useState<Unit>(() => fitting(units, value));
  const say = (text: string, size: number) => {
    const number = Number(text);
    onChange(text.trim() === "" || Number.isNaN(number) ? undefined : Math.round(number * size));
  };
  return (
    <Input.Wrapper id={id} label={label} description={description} error={error}>
      <div className={styles.amount}>
        <Input
          id={id}
          type="number"
          min={0}
          inputMode="numeric"
          error={Boolean(error)}
          value={value === undefined ? "" : value / unit.size}
          onChange={(event) => say(event.currentTarget.value, unit.size)}
        />
        {units.length === 1 ? (
          <span>{unit.word}</span>
        ) : (
          <NativeSelect
            aria-label={`Unit of ${label}`}
            data={units.map(({ word }) => word)}
            value={unit.word}
            onChange={(event) => {
              const next = units.find(({ word }) => word === event.currentTarget.value) ?? units[0];
              setUnit(next);
              // 10 min become 10 h, not 0.17 h.
              if (value !== undefined) onChange(Math.round((value / unit.size) * next.size));
            }}
          />
        )}
      </div>
    </Input.Wrapper>
  );
}

/** The greatest unit that says the value without a fraction; the one before the greatest for nothing. */
function fitting(units: readonly [Unit, ...Unit[]], value: number | undefined): Unit {
  if (!value) return units[Math.max(0, units.length - 2)] ?? units[0];
  return units.findLast(({ size }) => value % size === 0) ?? units[0];
}
