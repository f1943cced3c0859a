import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import type { Webhook } from "../api/client";
import { deleteWebhook, webhookKeys, webhookList } from "../api/webhooks";
import { Page } from "../app/Page";
import { Button, buttonClass } from "../ui/Button";
import { ConfirmDialog } from "../ui/ConfirmDialog";
import { Ago } from "../ui/Instant";
import { IconPlus, IconSlack, IconTrash, IconWebhook } from "../ui/icons";
import { Empty, Failed, SkeletonRows } from "../ui/states";
import table from "../ui/table.module.css";
import { useToast } from "../ui/toast";

export function WebhooksPage() {
  const webhooks = useQuery(webhookList());
  const [doomed, setDoomed] = useState<Webhook>();
  useEffect(() => {
    document.title = "Webhooks · Tocsin";
  }, []);
  return (
    <Page
      title="Webhooks"
      scrolls
      actions={
        <Link to="/webhooks/new" className={buttonClass("primary")}>
          <IconPlus size={16} aria-hidden="true" />
          New webhook
        </Link>
      }
    >
      {webhooks.isPending ? (
        <SkeletonRows count={4} height={56} label="Loading webhooks" />
      ) : webhooks.data === undefined ? (
        <Failed error={webhooks.error} onRetry={() => void webhooks.refetch()} />
      ) : webhooks.data.length === 0 ? (
        <Empty icon={IconWebhook} title="Nobody can be told yet">
          <p>A webhook is where messages go: a Slack channel, or any address that takes JSON.</p>
          <Link to="/webhooks/new" className={buttonClass("primary")}>
            Create the first webhook
          </Link>
        </Empty>
      ) : (
        <WebhookTable webhooks={webhooks.data} onDelete={setDoomed} />
      )}
      {doomed && <DeleteWebhook webhook={doomed} onClose={() => setDoomed(undefined)} />}
    </Page>
  );
}

export const kinds = {
  slack: { word: "Slack", icon: IconSlack },
  generic: { word: "Generic", icon: IconWebhook },
} as const;

interface TableProps {
  webhooks: readonly Webhook[];
  onDelete: (webhook: Webhook) => void;
}

function WebhookTable({ webhooks, onDelete }: TableProps) {
  return (
    <table className={table.table}>
      <thead>
        <tr>
          <th scope="col">Webhook</th>
          <th scope="col">Kind</th>
          <th scope="col">State</th>
          <th scope="col">
            <span className="visually-hidden">Actions</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {webhooks.map((webhook) => {
          const { word, icon: Icon } = kinds[webhook.kind];
          return (
            <tr key={webhook.id} id={webhook.id}>
              <td>
                <div className={table.name}>{webhook.name}</div>
                <div className={table.sub}>
                  <span className="mono">{webhook.slack?.channel ?? webhook.urlHost}</span>
                  {webhook.slack && (webhook.slack.hasSigningSecret ? " · bot with buttons" : " · bot")}
                  {webhook.hasSigningSecret && " · signed"}
                  {webhook.operators && " · for operators"}
                </div>
                {webhook.slack?.hasSigningSecret && (
                  <div className={table.sub}>
                    Request URL of the app's buttons:{" "}
                    <span className="mono">{window.location.origin + webhook.slack.interactionsPath}</span>
                  </div>
                )}
              </td>
              <td>
                <span style={{ display: "inline-flex", gap: 6, alignItems: "center" }}>
                  <Icon size={16} stroke={1.7} aria-hidden="true" />
                  {word}
                </span>
              </td>
              <td>
                <State webhook={webhook} />
              </td>
              <td>
                <div className={table.actions}>
                  <Button look="quiet" iconOnly aria-label={`Delete ${webhook.name}`} onClick={() => onDelete(webhook)}>
                    <IconTrash size={16} aria-hidden="true" />
                  </Button>
                </div>
              </td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

function State({ webhook }: { webhook: Webhook }) {
  if (!webhook.enabled) {
    return (
      <span className={webhook.disabledReason ? table.bad : table.quiet}>
        Switched off{webhook.disabledReason && `: ${webhook.disabledReason}`}
      </span>
    );
  }
  if (webhook.heldUntil && Date.parse(webhook.heldUntil) > Date.now()) {
    return (
      <span className={table.warn}>
        Held, as the receiver asked; goes on <Ago at={webhook.heldUntil} />
      </span>
    );
  }
  const rate = webhook.ratePerSecond > 0 ? `, at most ${webhook.ratePerSecond} a second` : "";
  return <span className={table.quiet}>On{rate}</span>;
}

function DeleteWebhook({ webhook, onClose }: { webhook: Webhook; onClose: () => void }) {
  const cache = useQueryClient();
  const toast = useToast();
  const remove = useMutation({
    mutationFn: () => deleteWebhook(webhook.id),
    onSuccess: async () => {
      onClose();
      toast(`“${webhook.name}” is deleted.`, "done");
      await cache.invalidateQueries({ queryKey: webhookKeys.all });
    },
  });
  return (
    <ConfirmDialog
      title={`Delete “${webhook.name}”?`}
      action="Delete the webhook"
      busy={remove.isPending}
      error={remove.error}
      onConfirm={() => remove.mutate()}
      onClose={onClose}
    >
      Nothing more is sent there. Its address and secrets are forgotten.
    </ConfirmDialog>
  );
}
