import { useForm } from "@mantine/form";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { me } from "../api/access";
import { placeErrors } from "../api/fields";
import { mayCall } from "../api/operations";
import { createWebhook, webhookKeys } from "../api/webhooks";
import { Page } from "../app/Page";
import { Button, buttonClass } from "../ui/Button";
import { Form } from "../ui/Form";
import styles from "../ui/form.module.css";
import { LeaveGuard } from "../ui/LeaveGuard";
import { Forbidden } from "../ui/states";
import { useToast } from "../ui/toast";
import { blank, definition, fields, type Values } from "./form";
import { WebhookFields } from "./WebhookFields";

export function NewWebhookPage() {
  const { data: who } = useQuery(me());
  if (who === undefined || mayCall(who, "createWebhook")) return <NewWebhook />;
  return (
    <Page title="New webhook">
      <Forbidden role={who.role} least="editors" />
    </Page>
  );
}

function NewWebhook() {
  const leaving = useRef(false);
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
      leaving.current = true;
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
      <LeaveGuard dirty={() => form.isDirty() && !leaving.current}>
        The webhook is not made yet. Its address and secrets are not kept in this browser.
      </LeaveGuard>
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
