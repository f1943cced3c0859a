import { Checkbox, Input, SegmentedControl, TagsInput, Textarea, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import type { Severity } from "../api/client";
import { placeErrors } from "../api/fields";
import { createRule, ruleKeys } from "../api/rules";
import { webhookList } from "../api/webhooks";
import { Page } from "../app/Page";
import { Button, buttonClass } from "../ui/Button";
import { Form, FormSection } from "../ui/Form";
import styles from "../ui/form.module.css";
import { severityMeaning } from "../ui/marks";
import { useToast } from "../ui/toast";
import { defaultTexts, definition, fieldsOf, initialValues, type Values } from "./definition";
import { sentence } from "./sentence";
import { TriggerSection } from "./TriggerSection";

const severities = (["CRITICAL", "WARNING", "INFO"] as const).map((value) => ({
  value,
  label: severityMeaning[value].word,
}));

export function NewRulePage() {
  const navigate = useNavigate();
  const cache = useQueryClient();
  const toast = useToast();
  const webhooks = useQuery(webhookList());
  const [problems, setProblems] = useState<readonly string[]>([]);
  const [refusals, setRefusals] = useState(0);
  useEffect(() => {
    document.title = "New rule · Tocsin";
  }, []);
  const form = useForm<Values>({ initialValues });
  const create = useMutation({
    mutationFn: createRule,
    onSuccess: async (rule) => {
      const warnings = (rule.warnings ?? []).map((warning) => warning.message).join(" ");
      toast(`“${rule.name}” is watching. ${warnings}`.trim(), "done");
      await cache.invalidateQueries({ queryKey: ruleKeys.all });
      await navigate({ to: "/rules", hash: rule.id });
    },
    onError: (error) => {
      const placed = placeErrors(error, fieldsOf(form.values.fireMode));
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
  const chosen = (webhooks.data ?? []).filter((webhook) => form.values.webhookIds.includes(webhook.id));

  const counts = form.values.fireMode === "COUNT_IN_WINDOW";
  const texts = defaultTexts(form.values);

  return (
    <Page title="New rule" scrolls>
      <Form problems={problems} refusals={refusals} onSubmit={submit}>
        <p className={styles.sentence} aria-live="polite">
          {sentence(
            definition(form.values),
            chosen.map((webhook) => webhook.name),
          )}
        </p>

        <FormSection title="Rule">
          <TextInput label="Name" placeholder="Failed orders" data-autofocus {...form.getInputProps("name")} />
          <Input.Wrapper label="Severity" labelElement="div" error={form.errors.severity}>
            <SegmentedControl
              data={severities}
              aria-label="Severity"
              value={form.values.severity}
              onChange={(value) => form.setFieldValue("severity", value as Severity)}
            />
          </Input.Wrapper>
        </FormSection>

        <FormSection
          title="Scope"
          hint="Where the rule looks. * stands for any run of characters; empty means everywhere."
        >
          <div className={styles.two}>
            <TagsInput
              label="Applications"
              placeholder="orders, billing-*"
              {...form.getInputProps("scope.applications")}
            />
            <TagsInput label="Routes" placeholder="order-to-*" {...form.getInputProps("scope.routes")} />
            <TagsInput label="Environments" placeholder="production" {...form.getInputProps("scope.environments")} />
          </div>
        </FormSection>

        <FormSection title="Filter" hint="What the rule looks for. All parts must hold.">
          <Checkbox.Group label="Exchanges that" {...form.getInputProps("filter.statuses")}>
            <div className={styles.actions} style={{ gap: 20, marginTop: 6 }}>
              <Checkbox size="xs" value="FAILED" label="failed" />
              <Checkbox size="xs" value="COMPLETED" label="completed" />
            </div>
          </Checkbox.Group>
          <TextInput
            label="Error message contains"
            description="Case matters. Empty means any."
            {...form.getInputProps("filter.errorMessageContains")}
          />
        </FormSection>

        <TriggerSection form={form} />

        <FormSection
          title="Message"
          hint={
            <>
              Mustache, such as <code>{counts ? "{{count.observed}}" : "{{exchange.application}}"}</code>,{" "}
              <code>{"{{exchange.errorMessage}}"}</code>
              {counts && ", where the exchange is the newest that matched"}. Empty means the text shown.
            </>
          }
        >
          <TextInput
            label="Title"
            placeholder={texts.title}
            classNames={{ input: styles.mono ?? "" }}
            {...form.getInputProps("titleTemplate")}
          />
          <Textarea
            label="Message"
            placeholder={texts.message}
            rows={3}
            classNames={{ input: styles.mono ?? "" }}
            {...form.getInputProps("messageTemplate")}
          />
        </FormSection>

        <FormSection
          title="Webhooks"
          hint={counts ? "Who is told, as said above." : "Who is told, once for each exchange."}
        >
          {webhooks.data?.length === 0 ? (
            <p>
              There is no webhook yet. <Link to="/webhooks/new">Create one</Link>, or go without: alerts appear in the
              inbox.
            </p>
          ) : (
            <Checkbox.Group aria-label="Webhooks" {...form.getInputProps("webhookIds")}>
              <div style={{ display: "grid", gap: 8 }}>
                {webhooks.data?.map((webhook) => (
                  <Checkbox
                    key={webhook.id}
                    size="xs"
                    value={webhook.id}
                    label={`${webhook.name}${webhook.enabled ? "" : " (switched off)"}`}
                  />
                ))}
              </div>
            </Checkbox.Group>
          )}
        </FormSection>

        <div className={styles.actions}>
          <Button type="submit" look="primary" disabled={create.isPending}>
            Create the rule
          </Button>
          <Link to="/rules" className={buttonClass()}>
            Cancel
          </Link>
        </div>
      </Form>
    </Page>
  );
}
