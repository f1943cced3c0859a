import { Checkbox, Input, NativeSelect, SegmentedControl } from "@mantine/core";
import type { UseFormReturnType } from "@mantine/form";
import type { FireMode, GroupBy } from "../api/client";
import { Amount } from "../ui/Amount";
import { FormSection } from "../ui/Form";
import styles from "../ui/form.module.css";
import type { Values } from "./definition";

const modes: { value: FireMode; label: string }[] = [
  { value: "PER_EXCHANGE", label: "Each exchange" },
  { value: "COUNT_IN_WINDOW", label: "A number of exchanges" },
];

const groups: { value: GroupBy | ""; label: string }[] = [
  { value: "", label: "All together" },
  { value: "ROUTE", label: "Each route for itself" },
  { value: "APPLICATION", label: "Each application for itself" },
  { value: "ENVIRONMENT", label: "Each environment for itself" },
];

const second = { size: 1, word: "s" };
const minute = { size: 60, word: "min" };
const hour = { size: 3600, word: "h" };
const minuteOfMinutes = { size: 1, word: "min" };
const hourOfMinutes = { size: 60, word: "h" };

/** When the rule fires. What does not apply to the fire mode is not there, and the section says why. */
export function TriggerSection({ form }: { form: UseFormReturnType<Values> }) {
  const counts = form.values.fireMode === "COUNT_IN_WINDOW";
  return (
    <FormSection title="Trigger" hint="What raises an alert.">
      <Input.Wrapper label="Alert on" labelElement="div" error={form.errors.fireMode}>
        <SegmentedControl
          data={modes}
          aria-label="Alert on"
          value={form.values.fireMode}
          onChange={(value) => form.setFieldValue("fireMode", value as FireMode)}
        />
      </Input.Wrapper>
      {counts ? (
        <Counting form={form} />
      ) : (
        <ul className={styles.reasons}>
          <li>Per-exchange rules fire exactly once — re-notify does not apply.</li>
          <li>Per-exchange rules fire at once — a duration does not apply.</li>
          <li>Such an alert stays until somebody resolves it — there is no end to tell.</li>
        </ul>
      )}
    </FormSection>
  );
}

function Counting({ form }: { form: UseFormReturnType<Values> }) {
  const { values, errors } = form;
  const set = (field: "threshold" | "windowSeconds" | "forDurationSeconds" | "reNotifyMinutes") => ({
    value: values[field],
    error: errors[field],
    onChange: (value: number | undefined) => form.setFieldValue(field, value),
  });
  return (
    <>
      <div className={styles.two}>
        <Amount
          label="Threshold"
          description="How many exchanges must match."
          units={[{ size: 1, word: "exchanges" }]}
          {...set("threshold")}
        />
        <Amount
          label="Window"
          description="Within which time; 10 s to 24 h."
          units={[second, minute, hour]}
          {...set("windowSeconds")}
        />
        <NativeSelect
          label="Count"
          description="Each group has an alert of its own."
          data={groups}
          {...form.getInputProps("groupBy")}
        />
        <Amount
          label="For"
          description="How long it must last before it fires; 0 is at once."
          units={[second, minute, hour]}
          {...set("forDurationSeconds")}
        />
        <Amount
          label="Remind each"
          description="While it fires and nobody has acknowledged it; 0 is never."
          units={[minuteOfMinutes, hourOfMinutes]}
          {...set("reNotifyMinutes")}
        />
      </div>
      <Checkbox
        size="xs"
        label="Tell when it is over: fewer match, and the alert resolves by itself"
        {...form.getInputProps("notifyOnResolve", { type: "checkbox" })}
      />
      <ul className={styles.reasons}>
        <li>Counting rules look at their whole window each time — a look-back does not apply.</li>
      </ul>
    </>
  );
}
