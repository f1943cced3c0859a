import { Checkbox, Input } from "@mantine/core";
import { memo } from "react";
import type { FireMode, GroupBy } from "../api/client";
import { Amount } from "../ui/Amount";
import { Choice } from "../ui/Choice";
import { FormSection } from "../ui/Form";
import styles from "../ui/form.module.css";
import { Select } from "../ui/Select";
import { notApplicable } from "./check";
import { amount, bound, type Editor } from "./editor";

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
const day = { size: 86_400, word: "d" };
const minuteOfMinutes = { size: 1, word: "min" };
const hourOfMinutes = { size: 60, word: "h" };

/** When the rule fires. What does not apply to the fire mode is not there, and the section says why. */
export const TriggerSection = memo(function TriggerSection({ editor }: { editor: Editor }) {
  const { form, errorOf } = editor;
  const counts = form.values.fireMode === "COUNT_IN_WINDOW";
  return (
    <FormSection title="Trigger" name="trigger" hint="What raises an alert.">
      <Input.Wrapper label="Alert on" labelElement="div" error={errorOf("fireMode")}>
        <Choice
          label="Alert on"
          options={modes}
          value={form.values.fireMode}
          onChange={(value) => form.setFieldValue("fireMode", value)}
        />
      </Input.Wrapper>
      {counts ? (
        <Counting editor={editor} />
      ) : (
        <ul className={styles.reasons}>
          <li>{notApplicable.reNotify}.</li>
          <li>{notApplicable.forDuration}.</li>
          <li>Such an alert stays until somebody resolves it — there is no end to tell.</li>
        </ul>
      )}
      <div className={styles.two}>
        <Amount
          label="Look every"
          description="How often the rule is evaluated; 1 s, which is at every tick, to 1 h."
          units={[second, minute]}
          {...amount(editor, "intervalSeconds")}
        />
        {!counts && (
          <Amount
            label="Look back"
            description="For exchanges that become visible late; 0 is not at all, at most 7 d."
            units={[second, minute, hour, day]}
            {...amount(editor, "lookBackSeconds")}
          />
        )}
      </div>
    </FormSection>
  );
});

function Counting({ editor }: { editor: Editor }) {
  return (
    <>
      <div className={styles.two}>
        <Amount
          label="Threshold"
          description="How many exchanges must match."
          units={[{ size: 1, word: "exchanges" }]}
          {...amount(editor, "threshold")}
        />
        <Amount
          label="Window"
          description="Within which time; 10 s to 24 h."
          units={[second, minute, hour]}
          {...amount(editor, "windowSeconds")}
        />
        <Select
          label="Count"
          description="Each group has an alert of its own."
          options={groups}
          {...bound(editor, "groupBy")}
        />
        <Amount
          label="For"
          description="How long it must last before it fires; 0 is at once."
          units={[second, minute, hour]}
          {...amount(editor, "forDurationSeconds")}
        />
        <Amount
          label="Remind each"
          description="While it fires and nobody has acknowledged it; 0 is never."
          units={[minuteOfMinutes, hourOfMinutes]}
          {...amount(editor, "reNotifyMinutes")}
        />
      </div>
      <Checkbox
        size="xs"
        label="Tell when it is over: fewer match, and the alert resolves by itself"
        {...bound(editor, "notifyOnResolve", { type: "checkbox" })}
      />
      <ul className={styles.reasons}>
        <li>Counting rules look at their whole window each time — a look-back does not apply.</li>
      </ul>
    </>
  );
}
