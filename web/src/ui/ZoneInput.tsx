import { TextInput } from "@mantine/core";
import { type ReactNode, useId, useMemo } from "react";

interface Props {
  label: string;
  value: string;
  onChange: (zone: string) => void;
  error?: ReactNode;
}

/** A time zone by its name, such as Europe/Berlin. The browser's known zones are offered. */
export function ZoneInput({ label, value, onChange, error }: Props) {
  const list = useId();
  const zones = useMemo(() => ["UTC", ...Intl.supportedValuesOf("timeZone").filter((zone) => zone !== "UTC")], []);
  return (
    <>
      <TextInput
        label={label}
        list={list}
        autoComplete="off"
        spellCheck={false}
        value={value}
        error={error}
        onChange={(event) => onChange(event.currentTarget.value)}
      />
      <datalist id={list}>
        {zones.map((zone) => (
          <option key={zone} value={zone} />
        ))}
      </datalist>
    </>
  );
}
