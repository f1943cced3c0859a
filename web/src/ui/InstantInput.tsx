import { TextInput } from "@mantine/core";
import { type ReactNode, useState } from "react";
import { useSetting } from "./setting";
import { clockChange, fieldInstant, fieldTime, timeZone, zoneName } from "./time";

interface Props {
  label: string;
  /** The text before the zone. */
  description?: string;
  /** An instant in the API's form; "" for none. */
  value: string;
  onChange: (at: string) => void;
  error?: ReactNode;
  disabled?: boolean;
}

/**
 * An instant, typed in the zone in which the reader sees all others. A value that is not edited
 * stays exact, even if the field only shows minutes.
 */
export function InstantInput({ description = "", value, onChange, ...rest }: Props) {
  useSetting(timeZone);
  const [typed, setTyped] = useState("");
  // A half-typed year is an instant that the field would write in another way.
  const text = fieldInstant(typed) === value ? typed : fieldTime(value);
  return (
    <TextInput
      {...rest}
      type="datetime-local"
      description={
        <>
          {[description, `Time zone: ${zoneName()}.`].filter(Boolean).join(" ")}{" "}
          <strong aria-live="polite">{clockChange(text, value)}</strong>
        </>
      }
      value={text}
      onChange={(event) => {
        setTyped(event.currentTarget.value);
        onChange(fieldInstant(event.currentTarget.value));
      }}
    />
  );
}
