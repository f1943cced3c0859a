import { Input } from "@mantine/core";
import { type ReactNode, useId } from "react";
import styles from "./Select.module.css";

export interface SelectProps<T extends string> {
  /** Shown above it; with `bare`, only for screen readers. */
  label: string;
  bare?: boolean;
  options: readonly { value: T; label: string }[];
  value?: T;
  onChange: (value: T) => void;
  onFocus?: () => void;
  onBlur?: () => void;
  description?: string;
  error?: ReactNode;
  disabled?: boolean;
}

/** One of several, with the browser's own list: the same in forms, toolbars and tables, and native on a phone. */
export function Select<T extends string>(props: SelectProps<T>) {
  const {
    label,
    bare = false,
    options,
    value,
    onChange,
    onFocus,
    onBlur,
    description,
    error,
    disabled = false,
  } = props;
  const id = useId();
  const described = bare ? [] : [description && `${id}-description`, error && `${id}-error`].filter(Boolean);
  const field = (
    <select
      id={id}
      className={bare ? `${styles.select} ${styles.bare}` : styles.select}
      aria-label={bare ? label : undefined}
      aria-describedby={described.join(" ") || undefined}
      aria-invalid={error ? true : undefined}
      disabled={disabled}
      onFocus={onFocus}
      onBlur={onBlur}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value as T)}
    >
      {options.map((option) => (
        <option key={option.value} value={option.value}>
          {option.label}
        </option>
      ))}
    </select>
  );
  if (bare) return field;
  return (
    <Input.Wrapper id={id} label={label} description={description} error={error}>
      <div className="mantine-Input-wrapper">{field}</div>
    </Input.Wrapper>
  );
}
