import { Checkbox, Input, PasswordInput, SegmentedControl, Textarea, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import type { WebhookDefinition } from "../api/client";
import { placeErrors } from "../api/fields";
import { createWebhook, webhookKeys } from "../api/webhooks";
import { Page } from "../app/Page";
import { Button, buttonClass } from "../ui/Button";
import { Form, FormSection } from "../ui/Form";
import styles from "../ui/form.module.css";
import { useToast } from "../ui/toast";
import { kinds } from "./WebhooksPage";

type Values = {
  name: string;
  kind: WebhookDefinition["kind"];
  url: string;
  /** Whether a Slack webhook posts as a bot, with `slack`, or to `url`. */
  bot: boolean;
  slack: { channel: string; botToken: string; signingSecret: string };
  bodyTemplate: string;
  signingSecret: string;
  operators: boolean;
};

const fields = [
  "name",
  "kind",
  "url",
  "slack.channel",
  "slack.botToken",
  "slack.signingSecret",
  "bodyTemplate",
  "signingSecret",
  "operators",
] as const;

const posterChoices = [
  { value: "url", label: "Incoming webhook" },
  { value: "bot", label: "Bot" },
];

const kindChoices = (["slack", "generic"] as const).map((value) => ({ value, label: kinds[value].word }));

/** What does not apply to a kind is not sent, whatever was typed before the kind was changed. */
function definition({
  name,
  kind,
  url,
  bot,
  slack,
  bodyTemplate,
  signingSecret,
  operators,
}: Values): WebhookDefinition {
  const { channel, botToken, signingSecret: slackSecret } = slack;
  return {
    name,
    kind,
    ...(kind === "slack" && bot
      ? { slack: { channel, botToken, ...(slackSecret ? { signingSecret: slackSecret } : {}) } }
      : { url }),
    ...(operators ? { operators } : {}),
    ...(kind === "generic" && bodyTemplate ? { bodyTemplate } : {}),
    ...(kind === "generic" && signingSecret ? { signingSecret } : {}),
  };
}

export function NewWebhookPage() {
  const navigate = useNavigate();
  const cache = useQueryClient();
  const toast = useToast();
  const [problems, setProblems] = useState<readonly string[]>([]);
  const [refusals, setRefusals] = useState(0);
  useEffect(() => {
    document.title = "New webhook · Tocsin";
  }, []);
  const form = useForm<Values>({
    initialValues: {
      name: "",
      kind: "slack",
      url: "",
      bot: false,
      slack: { channel: "", botToken: "", signingSecret: "" },
      bodyTemplate: "",
      signingSecret: "",
      operators: false,
    },
  });
  const create = useMutation({
    mutationFn: createWebhook,
    onSuccess: async (webhook) => {
      const warnings = (webhook.warnings ?? []).map((warning) => warning.message).join(" ");
      toast(`“${webhook.name}” is ready. ${warnings}`.trim(), "done");
      await cache.invalidateQueries({ queryKey: webhookKeys.all });
      await navigate({ to: "/webhooks" });
    },
    onError: (error) => {
      const placed = placeErrors(error, fields);
      form.setErrors(placed.fields);
      setProblems(placed.rest);
      setRefusals((count) => count + 1);
    },
  });
  const submit = () => {
    form.clearErrors();
    setProblems([]);
    create.mutate(definition(form.values));
  };
  const isSlack = form.values.kind === "slack";
  const isBot = isSlack && form.values.bot;

  return (
    <Page title="New webhook" scrolls>
      <Form problems={problems} refusals={refusals} onSubmit={submit}>
        <FormSection title="Webhook">
          <TextInput label="Name" placeholder="#ops" {...form.getInputProps("name")} />
          <Input.Wrapper label="Kind" labelElement="div" error={form.errors.kind}>
            <SegmentedControl
              data={kindChoices}
              aria-label="Kind"
              value={form.values.kind}
              onChange={(kind) => form.setFieldValue("kind", kind as Values["kind"])}
            />
          </Input.Wrapper>
          {isSlack && (
            <Input.Wrapper
              label="Posts as"
              labelElement="div"
              description="A bot's messages follow their alerts, and can have buttons to acknowledge and resolve."
            >
              <SegmentedControl
                data={posterChoices}
                aria-label="Posts as"
                value={isBot ? "bot" : "url"}
                onChange={(poster) => form.setFieldValue("bot", poster === "bot")}
              />
            </Input.Wrapper>
          )}
          {isBot ? (
            <>
              <TextInput
                label="Channel"
                description="Its id, such as C0123456789, or its name behind a #. The app must have been invited to it."
                autoComplete="off"
                spellCheck={false}
                {...form.getInputProps("slack.channel")}
              />
              <PasswordInput
                label="Bot token"
                description="The app's Bot User OAuth Token, xoxb-…, with the scope chat:write. It is kept encrypted and never shown again."
                autoComplete="off"
                {...form.getInputProps("slack.botToken")}
              />
              <PasswordInput
                label="Signing secret of the app"
                description="With it, messages have buttons. The list of webhooks then shows the request URL to enter in the app. Empty means no buttons."
                autoComplete="off"
                {...form.getInputProps("slack.signingSecret")}
              />
            </>
          ) : (
            <TextInput
              label="URL"
              type="url"
              description={
                isSlack
                  ? "The address of an incoming webhook, from Slack's settings. Whoever has it can post: it is kept encrypted and never shown again."
                  : "An http or https address that takes a POST. It is kept encrypted and never shown again."
              }
              autoComplete="off"
              spellCheck={false}
              {...form.getInputProps("url")}
            />
          )}
          <Checkbox
            label="For operators"
            description="Is told when a rule cannot be evaluated, and when it can again."
            {...form.getInputProps("operators", { type: "checkbox" })}
          />
        </FormSection>

        {!isSlack && (
          <FormSection title="Request">
            <PasswordInput
              label="Signing secret"
              description="whsec_ and base64, as Standard Webhooks say. Empty means unsigned."
              autoComplete="off"
              {...form.getInputProps("signingSecret")}
            />
            <Textarea
              label="Body"
              description="JSON with Mustache in its texts. Empty means Tocsin's own layout."
              rows={6}
              spellCheck={false}
              classNames={{ input: styles.mono ?? "" }}
              {...form.getInputProps("bodyTemplate")}
            />
          </FormSection>
        )}

        <div className={styles.actions}>
          <Button type="submit" look="primary" disabled={create.isPending}>
            Create the webhook
          </Button>
          <Link to="/webhooks" className={buttonClass()}>
            Cancel
          </Link>
        </div>
      </Form>
    </Page>
  );
}
