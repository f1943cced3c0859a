import { useForm } from "@mantine/form";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { placeErrors } from "../api/fields";
import { createWebhook, webhookKeys } from "../api/webhooks";
import { Page } from "../app/Page";
import { Button, buttonClass } from "../ui/Button";
import { Form } from "../ui/Form";
import styles from "../ui/form.module.css";
import { useToast } from "../ui/toast";
import { blank, definition, fields, type Values } from "./form";
import { WebhookFields } from "./WebhookFields";

export function NewWebhookPage() {
  const navigate = useNavigate();
  const cache = useQueryClient();
  const toast = useToast();
  const [problems, setProblems] = useState<readonly string[]>([]);
  const [refusals, setRefusals] = useState(0);
  useEffect(() => {
    document.title = "New webhook · Tocsin";
  }, []);
  const form = useForm<Values>({ initialValues: blank });
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
  return (
    <Page title="New webhook" scrolls>
      <Form problems={problems} refusals={refusals} onSubmit={submit}>
        <WebhookFields form={form} />
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
