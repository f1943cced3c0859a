import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import type { Rule } from "../api/client";
import { explain } from "../api/errors";
import { deleteRule, retryRule, ruleKeys, ruleList, setRuleEnabled } from "../api/rules";
import { webhookList } from "../api/webhooks";
import { Page } from "../app/Page";
import { Button, buttonClass } from "../ui/Button";
import { ConfirmDialog } from "../ui/ConfirmDialog";
import { Ago } from "../ui/Instant";
import { IconPause, IconPlay, IconPlus, IconRules, IconTrash } from "../ui/icons";
import { SeverityMark } from "../ui/marks";
import { Empty, Failed, SkeletonRows } from "../ui/states";
import table from "../ui/table.module.css";
import { lag } from "../ui/time";
import { useToast } from "../ui/toast";
import { sentence } from "./sentence";

export function RulesPage() {
  const rules = useQuery(ruleList());
  const [doomed, setDoomed] = useState<Rule>();
  useEffect(() => {
    document.title = "Rules · Tocsin";
  }, []);
  return (
    <Page
      title="Rules"
      scrolls
      actions={
        <Link to="/rules/new" className={buttonClass("primary")}>
          <IconPlus size={16} aria-hidden="true" />
          New rule
        </Link>
      }
    >
      {rules.isPending ? (
        <SkeletonRows count={5} height={64} label="Loading rules" />
      ) : rules.data === undefined ? (
        <Failed error={rules.error} onRetry={() => void rules.refetch()} />
      ) : rules.data.length === 0 ? (
        <Empty icon={IconRules} title="No rule looks at anything yet">
          <p>A rule says which exchanges are worth an alert, and whom to tell.</p>
          <Link to="/rules/new" className={buttonClass("primary")}>
            Create the first rule
          </Link>
        </Empty>
      ) : (
        <RuleTable rules={rules.data} onDelete={setDoomed} />
      )}
      {doomed && <DeleteRule rule={doomed} onClose={() => setDoomed(undefined)} />}
    </Page>
  );
}

function RuleTable({ rules, onDelete }: { rules: readonly Rule[]; onDelete: (rule: Rule) => void }) {
  const { data: webhooks } = useQuery(webhookList());
  const nameOf = (id: string) => webhooks?.find((webhook) => webhook.id === id)?.name ?? "a webhook";
  return (
    <table className={table.table}>
      <thead>
        <tr>
          <th scope="col">Rule</th>
          <th scope="col">Severity</th>
          <th scope="col">Health</th>
          <th scope="col">
            <span className="visually-hidden">Actions</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {rules.map((rule) => (
          <tr key={rule.id} id={rule.id}>
            <td>
              <div className={table.name}>{rule.name}</div>
              <div className={table.sub}>{sentence(rule, rule.webhookIds.map(nameOf))}</div>
            </td>
            <td>
              <SeverityMark severity={rule.severity} />
            </td>
            <td>
              <Health rule={rule} />
            </td>
            <td>
              <div className={table.actions}>
                <EnableButton rule={rule} />
                <Button look="quiet" iconOnly aria-label={`Delete ${rule.name}`} onClick={() => onDelete(rule)}>
                  <IconTrash size={16} aria-hidden="true" />
                </Button>
              </div>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const lateSeconds = 15;

function Health({ rule }: { rule: Rule }) {
  const { health, enabled } = rule;
  if (!enabled) return <span className={table.quiet}>Disabled</span>;
  if (health?.lastError) {
    return (
      <>
        <div className={table.bad}>Not evaluated: {health.lastError}</div>
        {health.lastErrorAt && (
          <div className={table.quiet}>
            <Ago at={health.lastErrorAt} />
          </div>
        )}
        <RetryButton rule={rule} />
      </>
    );
  }
  if (health?.lagSeconds === undefined) return <span className={table.quiet}>Not evaluated yet</span>;
  return <span className={health.lagSeconds > lateSeconds ? table.warn : table.quiet}>{lag(health.lagSeconds)}</span>;
}

function RetryButton({ rule }: { rule: Rule }) {
  const cache = useQueryClient();
  const toast = useToast();
  const retry = useMutation({
    mutationFn: () => retryRule(rule.id),
    onError: (error) => toast(`“${rule.name}” was not tried. ${explain(error).what}`, "failed"),
    onSettled: () => cache.invalidateQueries({ queryKey: ruleKeys.all }),
  });
  return (
    <Button
      look="quiet"
      disabled={retry.isPending}
      aria-label={`Evaluate ${rule.name} now`}
      onClick={() => retry.mutate()}
    >
      Evaluate now
    </Button>
  );
}

function EnableButton({ rule }: { rule: Rule }) {
  const cache = useQueryClient();
  const toast = useToast();
  const change = useMutation({
    mutationFn: () => setRuleEnabled(rule.id, !rule.enabled),
    onError: (error) => toast(`“${rule.name}” was not changed. ${explain(error).what}`, "failed"),
    onSettled: () => cache.invalidateQueries({ queryKey: ruleKeys.all }),
  });
  const Icon = rule.enabled ? IconPause : IconPlay;
  return (
    <Button
      look="quiet"
      disabled={change.isPending}
      aria-label={`${rule.enabled ? "Disable" : "Enable"} ${rule.name}`}
      onClick={() => change.mutate()}
    >
      <Icon size={15} aria-hidden="true" />
      {rule.enabled ? "Disable" : "Enable"}
    </Button>
  );
}

function DeleteRule({ rule, onClose }: { rule: Rule; onClose: () => void }) {
  const cache = useQueryClient();
  const toast = useToast();
  const remove = useMutation({
    mutationFn: () => deleteRule(rule.id),
    onSuccess: async () => {
      onClose();
      toast(`“${rule.name}” is deleted.`, "done");
      await cache.invalidateQueries({ queryKey: ruleKeys.all });
    },
  });
  return (
    <ConfirmDialog
      title={`Delete “${rule.name}”?`}
      action="Delete the rule"
      busy={remove.isPending}
      error={remove.error}
      onConfirm={() => remove.mutate()}
      onClose={onClose}
    >
      It raises nothing more. This cannot be undone; to stop it for a while, disable it.
    </ConfirmDialog>
  );
}
