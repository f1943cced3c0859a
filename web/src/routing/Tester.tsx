import { Textarea, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import type { RoutingTestAnswer, RoutingTestRequest } from "../api/client";
import { routingTest } from "../api/routing";
import { ruleNames } from "../api/rules";
import { webhookList } from "../api/webhooks";
import formStyles from "../ui/form.module.css";
import { Select } from "../ui/Select";
import { exactTime } from "../ui/time";
import { type Draft, noQuestion, problemsOf, type Question, requestOf, unmetWords, wrongPairs } from "./policy";
import styles from "./routing.module.css";
import { Escalation } from "./Steps";

const quietMs = 400;
const nothing: Draft = { routes: [], defaultWebhookIds: [], defaultEscalation: [] };

/** Who would be notified of an alert, and why. It uses the unsaved changes. */
export function Tester({ draft }: { draft: Draft | undefined }) {
  const { data: rules = [] } = useQuery(ruleNames());
  const form = useForm<Question>({ initialValues: noQuestion });
  const wrong = wrongPairs(form.values);
  const readable = Object.keys(wrong).length === 0;
  const asked = JSON.stringify(readable ? requestOf(form.values, draft) : null);
  const [settled] = useDebouncedValue(asked, quietMs);
  const request = useMemo(() => JSON.parse(settled) as RoutingTestRequest | null, [settled]);
  const { data, error } = useQuery({
    ...routingTest(request ?? requestOf(noQuestion, draft)),
    placeholderData: keepPreviousData,
    enabled: readable && request !== null,
  });
  return (
    <div className={styles.tester}>
      <h2>Who would be notified, and why?</h2>
      <div className={formStyles.two}>
        <Select
          label="Rule"
          options={[
            { value: "", label: "Any with this severity" },
            ...rules.map(({ id, name }) => ({ value: id, label: name })),
          ]}
          value={form.values.rule}
          onChange={(rule) => form.setFieldValue("rule", rule)}
        />
        <Select
          label="Severity"
          disabled={form.values.rule !== ""}
          options={[
            { value: "CRITICAL", label: "Critical" },
            { value: "WARNING", label: "Warning" },
            { value: "INFO", label: "Info" },
          ]}
          value={form.values.severity}
          onChange={(severity) => form.setFieldValue("severity", severity)}
        />
        <TextInput label="Application" {...form.getInputProps("application")} />
        <TextInput label="Exchange route" {...form.getInputProps("route")} />
        <TextInput label="Environment" {...form.getInputProps("environment")} />
        <TextInput label="Error type" {...form.getInputProps("errorType")} />
      </div>
      <TextInput label="Error message" {...form.getInputProps("errorMessage")} />
      <div className={formStyles.two}>
        <Textarea
          label="Rule labels"
          description="One per line: team = orders"
          rows={2}
          disabled={form.values.rule !== ""}
          {...form.getInputProps("labels")}
          error={wrong.labels}
        />
        <Textarea
          label="Exchange attributes"
          description="One per line: customer = 42"
          rows={2}
          {...form.getInputProps("attributes")}
          error={wrong.attributes}
        />
      </div>
      <div aria-live="polite" className={styles.answer}>
        {!readable ? (
          <p className={styles.bad}>No result: some lines cannot be read. Correct the marked fields.</p>
        ) : error ? (
          <p className={styles.bad}>No result. {problemsOf(error, draft ?? nothing).join(" ")}</p>
        ) : (
          data && <Answer data={data} />
        )}
        {draft && <p className={styles.sub}>This uses your unsaved changes.</p>}
      </div>
    </div>
  );
}

const verdicts = { TAKEN: "taken", NOT_MATCHED: "does not match", NOT_REACHED: "not reached" } as const;

function Answer({ data }: { data: RoutingTestAnswer }) {
  const { answer, webhooks, routes, suppressedBy, escalation = [] } = data;
  const all = useQuery(webhookList()).data ?? [];
  return (
    <>
      <p className={styles.big}>{webhooks.length === 0 ? "Nobody" : webhooks.map(({ name }) => name).join(", ")}</p>
      <p className={styles.sub}>
        {answer === "WEBHOOKS" && "The rule specifies its own webhooks."}
        {answer === "NO_ROUTE" && "No route matches, and there is no default."}
        {answer === "DEFAULT" && "No route matches; the alert goes to the default."}
      </p>
      {webhooks
        .filter(({ enabled }) => !enabled)
        .map(({ id, name }) => (
          <p key={id} className={styles.sub}>
            {name} is disabled: its messages wait until it is enabled.
          </p>
        ))}
      {webhooks.map(
        ({ id, name, quietUntil }) =>
          quietUntil && (
            <p key={id} className={styles.sub}>
              {name} has quiet hours: the message is held until {exactTime(quietUntil)}.
            </p>
          ),
      )}
      <Escalation steps={escalation} webhooks={all} />
      {suppressedBy && webhooks.length + escalation.length > 0 && (
        <p className={styles.sub}>The silence “{suppressedBy.name}” currently suppresses these messages.</p>
      )}
      <ol className={styles.steps} aria-label="Result for each route">
        {routes.map(({ name, verdict, unmet }) => (
          <li key={name} data-verdict={verdict}>
            {name}: {verdicts[verdict]}
            {unmet.length > 0 && <span className={styles.sub}> ({unmetWords(unmet)})</span>}
          </li>
        ))}
      </ol>
    </>
  );
}
