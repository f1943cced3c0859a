import { MultiSelect } from "@mantine/core";
import type { EscalationStep, Webhook } from "../api/client";
import { Amount } from "../ui/Amount";
import { Button } from "../ui/Button";
import { IconPlus, IconTrash } from "../ui/icons";
import { period } from "../ui/time";
import { listed } from "../ui/words";
import styles from "./routing.module.css";

interface Props {
  steps: readonly EscalationStep[];
  webhooks: readonly Webhook[];
  /** The names of the teams. */
  teams: readonly string[];
  onChange: (steps: EscalationStep[]) => void;
  /** The errors of the steps. */
  error?: string | undefined;
}

const most = 10;

/** The escalation of a route or of the default: who is notified while nobody acknowledges the alert. */
export function Steps({ steps, webhooks, teams, onChange, error }: Props) {
  const choices = [
    { group: "Webhooks", items: webhooks.map(({ id, name }) => ({ value: `webhook ${id}`, label: name })) },
    { group: "Teams", items: teams.map((name) => ({ value: `team ${name}`, label: `Team ${name}` })) },
  ];
  const last = steps.at(-1)?.afterMinutes ?? 0;
  return (
    <div className={styles.escalation}>
      {steps.map((step, at) => (
        // Steps have no other name than their place.
        // biome-ignore lint/suspicious/noArrayIndexKey: a step is edited in its place
        <fieldset key={at} aria-label={`Step ${at + 1}`} className={styles.step}>
          <Amount
            label="After"
            units={[
              { size: 1, word: "min" },
              { size: 60, word: "h" },
            ]}
            value={step.afterMinutes || undefined}
            error={undefined}
            onChange={(minutes = 0) => onChange(steps.with(at, { ...step, afterMinutes: minutes }))}
          />
          <MultiSelect
            label="Notify"
            searchable
            hidePickedOptions
            comboboxProps={{ withinPortal: false }}
            data={choices}
            value={toChosen(step)}
            onChange={(chosen) => onChange(steps.with(at, ofChosen(step.afterMinutes, chosen)))}
          />
          <Button
            look="quiet"
            iconOnly
            data-remove="steps"
            aria-label={`Remove step ${at + 1}`}
            onClick={() => onChange(steps.toSpliced(at, 1))}
          >
            <IconTrash size={16} aria-hidden="true" />
          </Button>
        </fieldset>
      ))}
      {error && (
        <p role="alert" className={styles.bad} tabIndex={-1} data-problems="">
          {error}
        </p>
      )}
      {steps.length < most && (
        <div>
          <Button data-add="steps" onClick={() => onChange([...steps, { afterMinutes: last + 15 }])}>
            <IconPlus size={16} aria-hidden="true" />
            Add step
          </Button>
        </div>
      )}
    </div>
  );
}

function toChosen({ webhookIds = [], teams = [] }: EscalationStep): string[] {
  return [...webhookIds.map((id) => `webhook ${id}`), ...teams.map((name) => `team ${name}`)];
}

function ofChosen(afterMinutes: number, chosen: readonly string[]): EscalationStep {
  const of = (kind: string) =>
    chosen.filter((one) => one.startsWith(`${kind} `)).map((one) => one.slice(kind.length + 1));
  return { afterMinutes, webhookIds: of("webhook"), teams: of("team") };
}

interface SaidProps {
  steps: readonly EscalationStep[];
  webhooks: readonly Webhook[];
}

/** The text of an escalation, one line for each step. */
export function Escalation({ steps, webhooks }: SaidProps) {
  if (steps.length === 0) return null;
  return (
    <ul className={styles.escalates} aria-label="Escalation">
      {steps.map(({ afterMinutes, webhookIds = [], teams = [] }) => (
        <li key={afterMinutes}>
          not acknowledged after {period(afterMinutes * 60)} →{" "}
          {listed([
            ...webhookIds.map((id) => webhooks.find((one) => one.id === id)?.name ?? "a webhook"),
            ...teams.map((name) => `team ${name}`),
          ])}
        </li>
      ))}
    </ul>
  );
}
