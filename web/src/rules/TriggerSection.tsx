import { Autocomplete, Checkbox, Input } from "@mantine/core";
import { memo, type ReactNode, useState } from "react";
import type { FireMode } from "../api/client";
import { Amount } from "../ui/Amount";
import { Choice } from "../ui/Choice";
import { FormSection } from "../ui/Form";
import styles from "../ui/form.module.css";
import { Select } from "../ui/Select";
import { Absence } from "./Absence";
import { groups, modes } from "./choices";
import { amount, bound, type Editor } from "./editor";
import { Resolution } from "./Resolution";
import { usualStatuses } from "./statuses";
import { useAttributeKeys } from "./useAttributeKeys";
import type { Values } from "./values";

const percentiles: { value: string; label: string }[] = [
  { value: "50", label: "p50: half take no longer" },
  { value: "95", label: "p95: 95 of 100 take no longer" },
  { value: "99", label: "p99: 99 of 100 take no longer" },
];

const millisecond = { size: 1, word: "ms" };
const secondOfMs = { size: 1000, word: "s" };
const minuteOfMs = { size: 60_000, word: "min" };

const second = { size: 1, word: "s" };
const minute = { size: 60, word: "min" };
const hour = { size: 3600, word: "h" };
const day = { size: 86_400, word: "d" };
const minuteOfMinutes = { size: 1, word: "min" };
const hourOfMinutes = { size: 60, word: "h" };

/** When the rule fires. Fields that do not apply to the fire mode are hidden, and the section says why. */
export const TriggerSection = memo(function TriggerSection({ editor }: { editor: Editor }) {
  const { form, errorOf } = editor;
  const counts = form.values.fireMode !== "PER_EXCHANGE";
  return (
    <FormSection title="Trigger" name="trigger" hint="What raises an alert.">
      <Input.Wrapper label="Alert on" labelElement="div" error={errorOf("fireMode")}>
        <Choice
          label="Alert on"
          options={modes}
          value={form.values.fireMode}
          onChange={(mode) => {
            form.setFieldValue("filter.statuses", measuredStatuses(form.values, mode));
            form.setFieldValue("fireMode", mode);
          }}
        />
      </Input.Wrapper>
      {counts ? (
        <Counting editor={editor} />
      ) : (
        <>
          <Resolution editor={editor} />
          <ul className={styles.reasons}>
            <li>Rules about single exchanges fire at once and send no reminders.</li>
            {form.values.resolution ? (
              <li>These settings also apply to alerts that are already open.</li>
            ) : (
              <li>The alert stays open until someone resolves it.</li>
            )}
          </ul>
        </>
      )}
      <Advanced open={["intervalSeconds", "lookBackSeconds"].some((field) => errorOf(field) !== undefined)}>
        <Amount
          label="Evaluate every"
          description="From 1 s to 1 h."
          units={[second, minute]}
          {...amount(editor, "intervalSeconds")}
        />
        {!counts && (
          <Amount
            label="Look-back"
            description="How long to look for exchanges that arrive late; 0 turns it off, at most 7 d."
            units={[second, minute, hour, day]}
            {...amount(editor, "lookBackSeconds")}
          />
        )}
      </Advanced>
    </FormSection>
  );
});

/**
 * Durations and absence are about all exchanges, unless the person has chosen otherwise; other
 * modes begin with failed exchanges.
 */
function measuredStatuses({ fireMode, filter }: Values, mode: FireMode): Values["filter"]["statuses"] {
  const usual = filter.statuses.toSorted().join() === usualStatuses(fireMode).join();
  return usual ? usualStatuses(mode) : filter.statuses;
}

/** Fields that rarely need a change. The part is open if one of them has an error, so that it can be corrected. */
function Advanced({ open, children }: { open: boolean; children: ReactNode }) {
  const [opened, setOpened] = useState(false);
  return (
    <details
      className={styles.advanced}
      open={open || opened}
      onToggle={(event) => setOpened(event.currentTarget.open)}
    >
      <summary>Advanced: how often, and how far back</summary>
      <div className={styles.two}>{children}</div>
    </details>
  );
}

/** What is compared. */
function Measure({ editor }: { editor: Editor }) {
  const volume = (
    <Amount
      label="Minimum volume"
      description="With fewer exchanges in the window, no alert fires."
      units={[{ size: 1, word: "exchanges" }]}
      {...amount(editor, "minVolume")}
    />
  );
  switch (editor.form.values.fireMode) {
    case "RATIO_IN_WINDOW":
      return (
        <>
          <Amount
            label="Ratio"
            description="The percentage of the exchanges in the scope that must match the filter."
            units={[{ size: 1, word: "%" }]}
            decimals={3}
            {...amount(editor, "percent")}
          />
          {volume}
        </>
      );
    case "DURATION_IN_WINDOW":
      return (
        <>
          <Percentiles editor={editor} />
          <Amount
            label="Duration threshold"
            description="The percentile must reach this duration."
            units={[millisecond, secondOfMs, minuteOfMs]}
            {...amount(editor, "durationMs")}
          />
          {volume}
        </>
      );
    default:
      return (
        <Amount
          label="Threshold"
          description={
            editor.form.values.fireMode === "ABSENT_IN_WINDOW"
              ? "An alert fires when fewer exchanges match."
              : "How many exchanges must match."
          }
          units={[{ size: 1, word: "exchanges" }]}
          {...amount(editor, "threshold")}
        />
      );
  }
}

function Percentiles({ editor: { form, errorOf } }: { editor: Editor }) {
  return (
    <Select
      label="Percentile"
      description="Calculated from the durations of the exchanges that match."
      options={percentiles}
      value={String(form.values.percentile)}
      error={errorOf("percentile")}
      onChange={(value) => form.setFieldValue("percentile", Number(value))}
    />
  );
}

function AttributeKey({ editor }: { editor: Editor }) {
  const keys = useAttributeKeys(editor.form.values.scope, true);
  return (
    <Autocomplete
      label="Attribute"
      description="Exchanges without this attribute, or with an empty value, form one group."
      placeholder="such as customer"
      data={keys}
      {...bound(editor, "groupByAttribute")}
    />
  );
}

function Counting({ editor }: { editor: Editor }) {
  const absent = editor.form.values.fireMode === "ABSENT_IN_WINDOW";
  return (
    <>
      <div className={styles.two}>
        <Measure editor={editor} />
        <Amount
          label="Window"
          description="The time within which exchanges are counted; 10 s to 24 h."
          units={[second, minute, hour]}
          {...amount(editor, "windowSeconds")}
        />
        {editor.form.values.fireMode === "RATIO_IN_WINDOW" && (
          <Amount
            label="Short window"
            description="The ratio must be reached in this window as well, so that the alert fires only while the problem persists; 0 means no short window."
            units={[second, minute, hour]}
            {...amount(editor, "shortWindowSeconds")}
          />
        )}
        <Select
          label="Group by"
          description="Exchanges are counted per group; each group has its own alert."
          options={absent ? groups.filter(({ value }) => value !== "ERROR_TYPE") : groups}
          {...bound(editor, "groupBy")}
        />
        {editor.form.values.groupBy === "ATTRIBUTE" && <AttributeKey editor={editor} />}
        <Amount
          label="For"
          description="How long the condition must hold before the alert fires; 0 means immediately."
          units={[second, minute, hour]}
          {...amount(editor, "forDurationSeconds")}
        />
        <Amount
          label="Remind every"
          description="While the alert fires and nobody has acknowledged it; 0 means never."
          units={[minuteOfMinutes, hourOfMinutes]}
          {...amount(editor, "reNotifyMinutes")}
        />
      </div>
      {absent && <Absence editor={editor} />}
      <Checkbox
        size="xs"
        label={
          absent
            ? "Send a message when enough exchanges are seen again and the alert resolves"
            : "Send a message when the threshold is no longer reached and the alert resolves"
        }
        {...bound(editor, "notifyOnResolve", { type: "checkbox" })}
      />
      <ul className={styles.reasons}>
        <li>Window rules evaluate their whole window each time, so a look-back does not apply.</li>
        {editor.form.values.fireMode === "RATIO_IN_WINDOW" && (
          <li>
            The ratio is calculated from all exchanges in the scope, completed and failed, regardless of the filter.
          </li>
        )}
        {absent && (
          <li>
            If exchanges arrived late in the last hour, the alert is delayed by as much. While ClickHouse cannot be
            read, no exchange counts as missing.
          </li>
        )}
      </ul>
    </>
  );
}
