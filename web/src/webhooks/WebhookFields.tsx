import { Checkbox, Input, PasswordInput, Textarea, TextInput } from "@mantine/core";
import type { UseFormReturnType } from "@mantine/form";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import type { Receiver, Webhook, WebhookEvent } from "../api/client";
import { receiverList } from "../api/receivers";
import { Choice } from "../ui/Choice";
import { FormSection } from "../ui/Form";
import styles from "../ui/form.module.css";
import { BodyField } from "./BodyField";
import { eventWords, type Values } from "./form";
import { kinds } from "./kinds";
import { QuietHours } from "./QuietHours";
import { ReceiverFields } from "./Receivers";

const posterChoices = [
  { value: "url", label: "Incoming webhook" },
  { value: "bot", label: "Bot" },
];

const kindChoices = [
  ...(["slack", "generic"] as const).map((value) => ({ value, label: kinds[value].word })),
  { value: "receiver" as const, label: "Receiver" },
];

interface Props {
  form: UseFormReturnType<Values>;
  /** The webhook that is edited; none for a new one. */
  webhook?: Webhook;
}

/** All fields of a webhook. */
export function WebhookFields({ form, webhook }: Props) {
  const isSlack = form.values.kind === "slack";
  const isBot = isSlack && form.values.bot;
  const isReceiver = !isSlack && form.values.forReceiver;
  const { data: receivers } = useQuery({ ...receiverList(), enabled: isReceiver });
  const receiver = receivers?.find(({ id }) => id === form.values.receiver);
  const events = (Object.keys(eventWords) as WebhookEvent[]).filter(
    (event) => !isReceiver || !receiver || receiver.events.includes(event),
  );
  return (
    <>
      <FormSection title="Webhook">
        <TextInput label="Name" placeholder="#ops" {...form.getInputProps("name")} />
        {!webhook && (
          <Input.Wrapper
            label="Kind"
            labelElement="div"
            description="A receiver is a service such as PagerDuty, Teams or e-mail."
            error={form.errors.kind}
          >
            <Choice
              label="Kind"
              options={kindChoices}
              value={isReceiver ? "receiver" : form.values.kind}
              onChange={(kind) =>
                form.setValues({ kind: kind === "slack" ? "slack" : "generic", forReceiver: kind === "receiver" })
              }
            />
          </Input.Wrapper>
        )}
        {isSlack && (
          <Input.Wrapper
            label="Posts as"
            labelElement="div"
            description="A bot updates its messages as alerts change, and can add buttons to acknowledge, resolve, assign and snooze."
          >
            <Choice
              label="Posts as"
              options={posterChoices}
              value={isBot ? "bot" : "url"}
              onChange={(poster) => form.setFieldValue("bot", poster === "bot")}
            />
          </Input.Wrapper>
        )}
        {isReceiver ? (
          <ReceiverFields form={form} {...(webhook ? { webhook } : {})} />
        ) : isBot ? (
          <Bot form={form} {...(webhook ? { webhook } : {})} />
        ) : (
          <Url form={form} {...(webhook ? { webhook } : {})} />
        )}
        <Checkbox
          label="For operators"
          description="Also notified about Tocsin itself: rules that cannot be evaluated, webhooks that do not work, and messages that were not delivered."
          {...form.getInputProps("operators", { type: "checkbox" })}
        />
        <Checkbox.Group
          label="Also notify when an alert is"
          description={
            isBot
              ? "The bot updates its messages anyway. This posts another one each time."
              : "Messages about an alert arrive in order. Reopened means that someone undid an action."
          }
          {...form.getInputProps("events")}
        >
          <div className={styles.choices}>
            {events.map((event) => (
              <Checkbox key={event} value={event} label={eventWords[event].toLowerCase()} />
            ))}
          </div>
        </Checkbox.Group>
      </FormSection>
      {!isSlack && !isReceiver && <Request form={form} {...(webhook ? { webhook } : {})} />}
      <QuietHours form={form} />
      <Pace form={form} {...(isReceiver && receiver ? { receiver } : {})} />
    </>
  );
}

/** A stored secret stays if nothing is typed. */
const kept = (is: boolean | undefined) => (is ? { placeholder: "Unchanged" } : {});

function Bot({ form, webhook }: Props) {
  return (
    <>
      <TextInput
        label="Channel"
        description="Its ID, such as C0123456789, or its name after a #. The app must have been invited to it."
        autoComplete="off"
        spellCheck={false}
        {...form.getInputProps("slack.channel")}
      />
      <PasswordInput
        label="Bot token"
        description="The app's Bot User OAuth Token, xoxb-…, with the scope chat:write. With users:read and users:read.email as well, Tocsin knows which of its users pressed a button. It is stored encrypted and never shown again."
        autoComplete="off"
        {...kept(webhook?.slack?.hasBotToken)}
        {...form.getInputProps("slack.botToken")}
      />
      <PasswordInput
        label="Signing secret of the app"
        description={`Enables the buttons in messages. The list of webhooks then shows the request URL to enter in the Slack app. ${
          webhook?.slack?.hasSigningSecret ? "Leave blank to keep the current one." : "Leave blank for no buttons."
        }`}
        autoComplete="off"
        {...kept(webhook?.slack?.hasSigningSecret)}
        {...form.getInputProps("slack.signingSecret")}
      />
      <Checkbox
        label="One thread for each issue"
        description="For a day, alerts with the same error in the same route are posted in the thread of the first message. After that, a new thread starts."
        {...form.getInputProps("slack.threads", { type: "checkbox" })}
      />
    </>
  );
}

function Url({ form, webhook }: Props) {
  const what =
    form.values.kind === "slack"
      ? "The URL of an incoming webhook, from Slack's settings. Anyone who has it can post, so it is stored encrypted and never shown again."
      : "An HTTP or HTTPS URL that accepts POST requests. It is stored encrypted and never shown again.";
  const present = webhook?.secretsProblem === undefined ? webhook?.urlHost : undefined;
  return (
    <TextInput
      label="URL"
      type="url"
      description={present ? `Leave blank to keep the current one at ${present}. ${what}` : what}
      autoComplete="off"
      spellCheck={false}
      {...kept(Boolean(present))}
      {...form.getInputProps("url")}
    />
  );
}

const problemOf = (error: ReactNode) => (typeof error === "string" ? error : undefined);

function Request({ form, webhook }: Props) {
  const present = webhook?.headerNames ?? [];
  const writes = present.length === 0 || form.values.replaceHeaders;
  return (
    <FormSection title="Request">
      {webhook && webhook.secretsProblem === undefined ? null : (
        <PasswordInput
          label="Signing secret"
          description="whsec_ followed by base64, as defined by Standard Webhooks. Leave blank to send unsigned requests."
          autoComplete="off"
          {...form.getInputProps("signingSecret")}
        />
      )}
      {present.length > 0 && (
        <Checkbox
          label="Replace headers"
          description={`Otherwise, the current headers are kept: ${present.join(", ")}. Their values cannot be shown.`}
          {...form.getInputProps("replaceHeaders", { type: "checkbox" })}
          error={!writes && form.errors.headers}
        />
      )}
      {writes && (
        <Textarea
          label="Headers"
          description="One per line, such as Authorization: Bearer … Values are stored encrypted and never shown again."
          rows={3}
          spellCheck={false}
          classNames={{ input: styles.mono ?? "" }}
          {...form.getInputProps("headers")}
          onChange={(event) => {
            form.setFieldValue("headers", event.currentTarget.value);
            if (webhook) form.setFieldValue("replaceHeaders", true);
          }}
        />
      )}
      <BodyField
        value={form.values.bodyTemplate}
        error={problemOf(form.errors.bodyTemplate)}
        onChange={(body) => form.setFieldValue("bodyTemplate", body)}
      />
    </FormSection>
  );
}

function Pace({ form, receiver }: { form: UseFormReturnType<Values>; receiver?: Receiver }) {
  const slack = form.values.kind === "slack";
  const rate = receiver ? `${receiver.ratePerSecond}` : slack ? "1, as Slack requires" : "0";
  const digest = receiver?.keyed
    ? "This receiver tracks each alert separately and gets no digests."
    : `When more messages are waiting, they are combined into one. 0 means never. Default: ${receiver?.digestAbove ?? (slack ? 20 : 0)}.`;
  const [opened, setOpened] = useState(false);
  const wrong = ["ratePerSecond", "digestAbove", "timeoutSeconds", "maxConcurrent", "eventMaxAgeSeconds"].some(
    (field) => form.errors[field],
  );
  const number = { type: "number", min: 0, inputMode: "decimal" } as const;
  return (
    <details
      className={styles.advanced}
      open={wrong || opened}
      onToggle={(event) => setOpened(event.currentTarget.open)}
    >
      <summary>Advanced: limits</summary>
      <p className={styles.hint}>Leave a field blank to use the default.</p>
      <div className={styles.two}>
        <TextInput
          label="Messages per second"
          description={`Limit for all replicas together; 0 means no limit. Default: ${rate}.`}
          step="any"
          {...number}
          {...form.getInputProps("ratePerSecond")}
        />
        <TextInput
          label="Digest above"
          description={digest}
          disabled={receiver?.keyed ?? false}
          {...number}
          {...form.getInputProps("digestAbove")}
        />
        <TextInput
          label="Timeout in seconds"
          description="For one attempt, 1 to 60. Default: 10."
          step="any"
          {...number}
          {...form.getInputProps("timeoutSeconds")}
        />
        <TextInput
          label="Concurrent requests"
          description="Per replica, 1 to 256. Default: 8."
          {...number}
          {...form.getInputProps("maxConcurrent")}
        />
        <TextInput
          label="Maximum age of events, in seconds"
          description={
            receiver?.keyed
              ? `${receiver.name} gets all events, however old.`
              : "Older events are not sent. From 60 to 2592000. Default: 86400, which is one day."
          }
          disabled={receiver?.keyed ?? false}
          {...number}
          {...form.getInputProps("eventMaxAgeSeconds")}
        />
      </div>
    </details>
  );
}
