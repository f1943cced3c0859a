import { Input } from "@mantine/core";
import { type ReactNode, useId, useState } from "react";
import styles from "./form.module.css";
import { Select } from "./Select";

interface Unit {
  /** The size of the unit, in the smallest unit. */
  size: number;
  word: string;
}

interface Props {
  label: string;
  description?: string;
  /** The smallest unit first, with size 1. */
  units: readonly [Unit, ...Unit[]];
  /** In the smallest unit; undefined if there is no number. */
  value: number | undefined;
  error: ReactNode;
  onChange: (value: number | undefined) => void;
  placeholder?: string;
  /** How many decimals it may have, none by default. */
  decimals?: number;
}

/**
 * A number in some unit, an integer unless decimals are allowed. Choosing another unit shows the
 * same amount, for example 90 s as 1.5 min, and never changes it. An amount that is not exact in a
 * unit is shown below the field.
 */
export function Amount({ label, description, units, value, error, onChange, placeholder, decimals = 0 }: Props) {
  const id = useId();
  const [unit, setUnit] = useState<Unit>(() => fitting(units, value));
  const say = (text: string, size: number) => {
    const number = Number(text);
    const [whole, rounding] = [number * size, 10 ** decimals];
    onChange(text.trim() === "" || Number.isNaN(number) ? undefined : Math.round(whole * rounding) / rounding);
  };
  return (
    <Input.Wrapper id={id} label={label} description={description} error={error}>
      <div className={styles.amount}>
        <Input
          id={id}
          type="number"
          min={0}
          inputMode="decimal"
          placeholder={placeholder}
          error={Boolean(error)}
          step="any"
          value={value === undefined ? "" : rounded(value / unit.size)}
          onChange={(event) => say(event.currentTarget.value, unit.size)}
        />
        {units.length === 1 ? (
          <span>{unit.word}</span>
        ) : (
          <Select
            bare
            label={`Unit of ${label}`}
            options={units.map(({ word }) => ({ value: word, label: word }))}
            value={unit.word}
            onChange={(chosen) => setUnit(units.find(({ word }) => word === chosen) ?? units[0])}
          />
        )}
      </div>
      {value !== undefined && decimals === 0 && value % unit.size !== 0 && (
        <p className={styles.exactly}>That is {exactly(units, value)}.</p>
      )}
    </Input.Wrapper>
  );
}

/** 1.2345678 as 1.2346, for an input, which has no digit grouping. */
const rounded = (value: number) => Math.round(value * 1e4) / 1e4;

/** 5400 s as "1 h 30 min". */
function exactly(units: readonly Unit[], value: number): string {
  let rest = value;
  const parts: string[] = [];
  for (const { size, word } of units.toReversed()) {
    if (rest >= size) parts.push(`${Math.floor(rest / size)} ${word}`);
    rest %= size;
  }
  return parts.join(" ");
}

/** The largest unit that shows the value without a fraction; for no value, the second largest. */
function fitting(units: readonly [Unit, ...Unit[]], value: number | undefined): Unit {
  if (!value) return units[Math.max(0, units.length - 2)] ?? units[0];
  return units.findLast(({ size }) => value % size === 0) ?? units[0];
}
