import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import type { Webhook } from "../api/client";
import { useMay } from "../api/operations";
import { deleteWebhook, webhookHealth, webhookKeys } from "../api/webhooks";
import { useDrafted } from "../drafts/useDrafted";
import { Page } from "../frame/Page";
import { Button, buttonClass } from "../ui/Button";
import { IconPause, IconPending, IconPlay, IconPlus, IconTrash, IconWebhook } from "../ui/icons";
import { useLastError } from "../ui/lastError";
import { RemoveDialog } from "../ui/RemoveDialog";
import { Empty, Failed, SkeletonRows } from "../ui/states";
import table from "../ui/table.module.css";
import { useHash } from "../ui/useHash";
import { useSwitch } from "./changes";
import { webhookKind } from "./form";
import { Health } from "./Health";
import { kinds } from "./kinds";
import { TestDialog } from "./TestDialog";
import styles from "./webhooks.module.css";

type Open = { what: "delete" | "test"; webhook: Webhook };

export function WebhooksPage() {
  const webhooks = useQuery(webhookHealth());
  const failure = useLastError(webhooks);
  const may = useMay()("createWebhook");
  const [open, setOpen] = useState<Open>();
  const drafted = useDrafted(webhookKind);
  const close = () => setOpen(undefined);
  useEffect(() => {
    document.title = "Webhooks · Tocsin";
  }, []);
  return (
    <Page
      title="Webhooks"
      scrolls
      actions={
        may && (
          <Link to="/webhooks/new" data-add="webhooks" className={buttonClass("primary")}>
            <IconPlus size={16} aria-hidden="true" />
            {drafted(undefined) ? "Continue new webhook" : "New webhook"}
          </Link>
        )
      }
    >
      {webhooks.isPending && !failure ? (
        <SkeletonRows headed count={4} height={56} label="Loading webhooks" />
      ) : webhooks.data === undefined ? (
        <Failed error={failure} onRetry={webhooks.refetch} />
      ) : webhooks.data.length === 0 ? (
        <Empty icon={IconWebhook} title="No webhooks yet">
          <p>
            A webhook is where messages are sent: a Slack channel, a receiver such as PagerDuty or Teams, or any HTTP
            endpoint that accepts JSON.
          </p>
          {may ? (
            <Link to="/webhooks/new" className={buttonClass("primary")}>
              Create your first webhook
            </Link>
          ) : (
            <p>Editors can create webhooks.</p>
          )}
        </Empty>
      ) : (
        <WebhookTable webhooks={webhooks.data} may={may} onOpen={(what, webhook) => setOpen({ what, webhook })} />
      )}
      {open?.what === "delete" && <DeleteWebhook webhook={open.webhook} onClose={close} />}
      {open?.what === "test" && <TestDialog webhook={open.webhook} onClose={close} />}
    </Page>
  );
}

interface TableProps {
  webhooks: readonly Webhook[];
  /** Whether the reader's role may change webhooks. */
  may: boolean;
  onOpen: (what: Open["what"], webhook: Webhook) => void;
}

function WebhookTable({ webhooks, may, onOpen }: TableProps) {
  const drafted = useDrafted(webhookKind);
  const hash = useHash();
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
            <tr key={webhook.id} id={webhook.id} aria-current={webhook.id === hash || undefined}>
              <td>
                {may ? (
                  <Link to="/webhooks/$webhookId" params={{ webhookId: webhook.id }} className={table.name}>
                    {webhook.name}
                  </Link>
                ) : (
                  <div className={table.name}>{webhook.name}</div>
                )}
                {may && drafted(webhook.id) && <span className={table.draft}>unsaved changes</span>}
                <div className={table.sub}>
                  <span className="mono">{webhook.slack?.channel ?? webhook.urlHost}</span>
                  {webhook.slack && (webhook.slack.hasSigningSecret ? " · bot with buttons" : " · bot")}
                  {webhook.hasSigningSecret && (webhook.formerSecretUntil ? " · signed with two secrets" : " · signed")}
                  {webhook.operators && " · notifies operators"}
                </div>
                {webhook.slack?.hasSigningSecret && (
                  <div className={`${table.sub} ${styles.buttonsUrl}`}>
                    Request URL of the app's buttons:{" "}
                    <span className="mono">{window.location.origin + webhook.slack.interactionsPath}</span>
                  </div>
                )}
              </td>
              <td className={table.line}>
                <span style={{ display: "inline-flex", gap: 6, alignItems: "center" }}>
                  <Icon size={16} stroke={1.7} aria-hidden="true" />
                  {webhook.preset?.name ?? word}
                </span>
              </td>
              <td>
                <Health webhook={webhook} />
              </td>
              <td>{may && <RowActions webhook={webhook} onOpen={onOpen} />}</td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

function RowActions({ webhook, onOpen }: { webhook: Webhook; onOpen: TableProps["onOpen"] }) {
  const flip = useSwitch();
  const word = webhook.enabled ? "Disable" : "Enable";
  return (
    <div className={table.actions}>
      <Button
        look="quiet"
        iconOnly
        aria-label={`Test ${webhook.name}`}
        title="Test"
        onClick={() => onOpen("test", webhook)}
      >
        <IconPending size={16} aria-hidden="true" />
      </Button>
      <Button
        look="quiet"
        iconOnly
        aria-label={`${word} ${webhook.name}`}
        title={word}
        busy={flip.isPending}
        onClick={() => flip.mutate(webhook)}
      >
        {webhook.enabled ? <IconPause size={16} aria-hidden="true" /> : <IconPlay size={16} aria-hidden="true" />}
      </Button>
      <Button
        look="quiet"
        iconOnly
        data-remove="webhooks"
        aria-label={`Delete ${webhook.name}`}
        title="Delete"
        onClick={() => onOpen("delete", webhook)}
      >
        <IconTrash size={16} aria-hidden="true" />
      </Button>
    </div>
  );
}

function DeleteWebhook({ webhook, onClose }: { webhook: Webhook; onClose: () => void }) {
  return (
    <RemoveDialog
      title={`Delete “${webhook.name}”?`}
      action="Delete webhook"
      remove={() => deleteWebhook(webhook.id)}
      done={`“${webhook.name}” was deleted.`}
      notDone={`“${webhook.name}” was not deleted.`}
      stale={webhookKeys.all}
      onClose={onClose}
    >
      No more messages are sent to it. Waiting and failed messages are discarded. Its URL and secrets are deleted.
    </RemoveDialog>
  );
}
