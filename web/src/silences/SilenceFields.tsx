import { Checkbox, Input, Textarea, TextInput } from "@mantine/core";
import type { UseFormReturnType } from "@mantine/form";
import { Button } from "../ui/Button";
import { Choice } from "../ui/Choice";
import { FormSection } from "../ui/Form";
import formStyles from "../ui/form.module.css";
import { InstantInput } from "../ui/InstantInput";
import { ZoneInput } from "../ui/ZoneInput";
import { inHours, shortDay, type Values, weekdays } from "./form";
import { MatchFields } from "./MatchFields";
import styles from "./silences.module.css";

type OfForm = { form: UseFormReturnType<Values> };

/** All fields of a silence. */
export function SilenceFields({ form, begun }: OfForm & { begun: boolean }) {
  return (
    <>
      <WhatSection form={form} />
      <FormSection
        title="Matching alerts"
        hint="An alert must meet every condition. A blank field matches everything. Alerts about Tocsin itself are never silenced."
      >
        <MatchFields form={form} />
      </FormSection>
      <WhenSection form={form} begun={begun} />
    </>
  );
}

function WhatSection({ form }: OfForm) {
  return (
    <FormSection title="Silence">
      <TextInput label="Name" placeholder="ERP maintenance" {...form.getInputProps("name")} />
      <Textarea
        label="Reason"
        description="Shown on each alert whose messages the silence suppresses."
        rows={2}
        {...form.getInputProps("reason")}
      />
    </FormSection>
  );
}

const lengths = [
  [0.5, "30 min"],
  [1, "1 h"],
  [2, "2 h"],
  [8, "8 h"],
  [24, "1 day"],
  [168, "1 week"],
] as const;

function WhenSection({ form, begun }: OfForm & { begun: boolean }) {
  const { recurs } = form.values;
  return (
    <FormSection title="Schedule">
      <Input.Wrapper label="Repeats" labelElement="div">
        <Choice
          label="Repeats"
          options={[
            { value: "once", label: "Once" },
            { value: "recurs", label: "Every week" },
          ]}
          value={recurs ? "recurs" : "once"}
          onChange={(chosen) => {
            form.setFieldValue("recurs", chosen === "recurs");
            if (chosen === "recurs") form.setFieldValue("endsAt", "");
          }}
        />
      </Input.Wrapper>
      {recurs && <Windows form={form} />}
      {!recurs && (
        <fieldset className={styles.quick} aria-label="Duration">
          <span className={styles.sub}>From now, for</span>
          {lengths.map(([hours, label]) => (
            <Button
              key={label}
              onClick={() => {
                if (!begun) form.setFieldValue("startsAt", "");
                form.setFieldValue("endsAt", inHours(hours));
              }}
            >
              {label}
            </Button>
          ))}
        </fieldset>
      )}
      <div className={formStyles.two}>
        <InstantInput
          label="Starts"
          description={begun ? "The silence has already started." : "Leave blank to start now."}
          disabled={begun}
          value={form.values.startsAt}
          error={form.errors.startsAt}
          onChange={(at) => form.setFieldValue("startsAt", at)}
        />
        <InstantInput
          label="Ends"
          description={recurs ? "Leave blank to repeat until you end it." : ""}
          value={form.values.endsAt}
          error={form.errors.endsAt}
          onChange={(at) => form.setFieldValue("endsAt", at)}
        />
      </div>
      <Checkbox
        label="Send a digest at the end"
        description={
          recurs
            ? "At the end of each window, each webhook gets one message that lists what was suppressed for it."
            : "Each webhook gets one message that lists what was suppressed for it."
        }
        {...form.getInputProps("digest", { type: "checkbox" })}
      />
    </FormSection>
  );
}

function Windows({ form }: OfForm) {
  return (
    <>
      <Checkbox.Group label="Weekdays" {...form.getInputProps("weekdays")}>
        <div className={styles.days}>
          {weekdays.map((day) => (
            <Checkbox key={day} size="xs" value={day} label={shortDay(day)} />
          ))}
        </div>
      </Checkbox.Group>
      <div className={formStyles.two}>
        <TextInput type="time" label="From" {...form.getInputProps("from")} />
        <TextInput label="Duration in hours" inputMode="decimal" {...form.getInputProps("hours")} />
        <ZoneInput
          label="Time zone"
          value={form.values.timeZone}
          error={form.errors.timeZone}
          onChange={(zone) => form.setFieldValue("timeZone", zone)}
        />
      </div>
    </>
  );
}
