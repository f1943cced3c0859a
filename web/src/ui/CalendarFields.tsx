import { Checkbox, Input, TextInput } from "@mantine/core";
import type { ReactNode } from "react";
import type { RuleDefinition } from "../api/client";
import styles from "./form.module.css";
import { ZoneInput } from "./ZoneInput";

type Calendar = NonNullable<RuleDefinition["calendar"]>;

const days = [
  "MON",
  "TUE",
  "WED",
  "THU",
  "FRI",
  "SAT",
  "SUN",
] as const satisfies readonly Calendar["weekdays"][number][];
/** The order of the API. */
const stored = ["SUN", ...days.slice(0, -1)] as const;

interface Props {
  value: Calendar;
  onChange: (calendar: Calendar) => void;
  /** The API's errors for "weekdays", "from", "to" or "timeZone". */
  errorOf?: (field: keyof Calendar) => ReactNode;
}

/** The hours of some weekdays in a time zone. */
export function CalendarFields({ value, onChange, errorOf = () => undefined }: Props) {
  return (
    <>
      <Input.Wrapper label="Weekdays" labelElement="div" error={errorOf("weekdays")}>
        <div className={styles.choices}>
          {days.map((day) => (
            <Checkbox
              key={day}
              size="xs"
              label={day.charAt(0) + day.slice(1).toLowerCase()}
              checked={value.weekdays.includes(day)}
              onChange={(event) =>
                onChange({
                  ...value,
                  weekdays: stored.filter((one) =>
                    one === day ? event.currentTarget.checked : value.weekdays.includes(one),
                  ),
                })
              }
            />
          ))}
        </div>
      </Input.Wrapper>
      <div className={styles.three}>
        {(
          [
            ["from", "From"],
            ["to", "To (24:00 for midnight)"],
          ] as const
        ).map(([field, label]) => (
          <TextInput
            key={field}
            label={label}
            placeholder="HH:MM"
            autoComplete="off"
            value={value[field]}
            error={errorOf(field)}
            onChange={(event) => onChange({ ...value, [field]: event.currentTarget.value })}
          />
        ))}
        <ZoneInput
          label="Time zone"
          value={value.timeZone}
          error={errorOf("timeZone")}
          onChange={(timeZone) => onChange({ ...value, timeZone })}
        />
      </div>
    </>
  );
}
