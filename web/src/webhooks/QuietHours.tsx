import { Input } from "@mantine/core";
import type { UseFormReturnType } from "@mantine/form";
import { Button } from "../ui/Button";
import { CalendarFields } from "../ui/CalendarFields";
import { FormSection } from "../ui/Form";
import styles from "../ui/form.module.css";
import { zoneName } from "../ui/time";
import type { Values } from "./form";

/** When the webhook is only notified of critical alerts. */
export function QuietHours({ form }: { form: UseFormReturnType<Values> }) {
  const { quietHours } = form.values;
  const set = (list: Values["quietHours"]) => form.setFieldValue("quietHours", list);
  return (
    <FormSection title="Quiet hours">
      <p className={styles.hint}>
        Messages about alerts that are not critical are held within these hours, and sent when they are over, if the
        alert still fires and nobody has acknowledged, resolved or snoozed it.
      </p>
      {quietHours.map((calendar, place) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: entries have no identity but their place.
        <fieldset key={place} className={styles.entry} aria-label={`Quiet hours ${place + 1}`}>
          <CalendarFields
            value={calendar}
            onChange={(changed) => set(quietHours.map((one, at) => (at === place ? changed : one)))}
          />
          <Button
            look="quiet"
            data-remove="quiet hours"
            aria-label={`Remove quiet hours ${place + 1}`}
            onClick={() => set(quietHours.filter((_, at) => at !== place))}
          >
            Remove
          </Button>
        </fieldset>
      ))}
      {form.errors.quietHours && (
        <Input.Error role="alert" tabIndex={-1} data-problems="">
          {form.errors.quietHours}
        </Input.Error>
      )}
      <div>
        <Button
          data-add="quiet hours"
          disabled={quietHours.length >= 10}
          onClick={() =>
            set([
              ...quietHours,
              {
                timeZone: quietHours.at(-1)?.timeZone ?? zoneName(),
                weekdays: ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"],
                from: "20:00",
                to: "07:00",
              },
            ])
          }
        >
          Add quiet hours
        </Button>
      </div>
    </FormSection>
  );
}
