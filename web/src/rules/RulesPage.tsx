import { Switch } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { alertActivity } from "../api/activity";
import type { AlertGroup, Rule } from "../api/client";
import { reasonOf } from "../api/errors";
import { useMay } from "../api/operations";
import { deleteRule, openAlerts, ruleKeys, setRuleEnabled, useRuleHealth } from "../api/rules";
import { webhookList } from "../api/webhooks";
import { useDrafted } from "../drafts/useDrafted";
import { Page } from "../frame/Page";
import { Button, buttonClass } from "../ui/Button";
import { IconPlus, IconRules, IconTrash } from "../ui/icons";
import { SeverityMark } from "../ui/marks";
import { RemoveDialog } from "../ui/RemoveDialog";
import { useStanding } from "../ui/standing";
import { Empty, Failed, SkeletonRows } from "../ui/states";
import table from "../ui/table.module.css";
import { useToast } from "../ui/toast";
import { number } from "../ui/words";
import { ruleKind } from "./drafts";
import { Health } from "./Health";
import { Raised } from "./Raised";
import { sentence } from "./sentence";

export function RulesPage() {
  const rules = useRuleHealth();
  const failure = useStanding(rules);
  // What stands in a row comes with the row, unless it cannot be had.
  const complete = [useQuery(webhookList()), useQuery(openAlerts()), useQuery(alertActivity())].every(
    (q) => q.isFetched,
  );
  const mayWrite = useMay()("createRule");
  const drafted = useDrafted(ruleKind);
  const [doomed, setDoomed] = useState<Rule>();
  useEffect(() => {
    document.title = "Rules · Tocsin";
  }, []);
  return (
    <Page
      title="Rules"
      scrolls
      actions={
        mayWrite && (
          <Link to="/rules/new" className={buttonClass("primary")}>
            <IconPlus size={16} aria-hidden="true" />
            {mayWrite && drafted(undefined) ? "Continue the new rule" : "New rule"}
          </Link>
        )
      }
    >
      {!failure && (rules.data === undefined || (!complete && rules.data.length > 0)) ? (
        <SkeletonRows headed count={5} height={64} label="Loading rules" />
      ) : rules.data === undefined ? (
        <Failed error={failure} onRetry={rules.refetch} />
      ) : rules.data.length === 0 ? (
        <Empty icon={IconRules} title="No rules yet">
          <p>A rule defines which exchanges raise an alert, and where messages go.</p>
          {mayWrite ? (
            <Link to="/rules/new" className={buttonClass("primary")}>
              Create the first rule
            </Link>
          ) : (
            <p>Editors can create rules.</p>
          )}
        </Empty>
      ) : (
        <RuleTable rules={rules.data} mayWrite={mayWrite} onDelete={setDoomed} />
      )}
      {doomed && <DeleteRule rule={doomed} onClose={() => setDoomed(undefined)} />}
    </Page>
  );
}

interface TableProps {
  rules: readonly Rule[];
  mayWrite: boolean;
  onDelete: (rule: Rule) => void;
}

function RuleTable({ rules, mayWrite, onDelete }: TableProps) {
  const { data: webhooks } = useQuery(webhookList());
  const { data: open } = useQuery(openAlerts());
  const drafted = useDrafted(ruleKind);
  const nameOf = (id: string) => webhooks?.find((webhook) => webhook.id === id)?.name ?? "a webhook";
  return (
    <table className={table.table}>
      <thead>
        <tr>
          <th scope="col">Rule</th>
          <th scope="col">Severity</th>
          <th scope="col">Open alerts</th>
          <th scope="col">Last hour</th>
          <th scope="col">Health</th>
          <th scope="col">Enabled</th>
          <th scope="col">
            <span className="visually-hidden">Actions</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {rules.map((rule) => (
          <tr key={rule.id} id={rule.id}>
            <td>
              <Link to="/rules/$ruleId" params={{ ruleId: rule.id }} className={table.name}>
                {rule.name}
              </Link>
              {mayWrite && drafted(rule.id) && <span className={table.draft}>unsaved changes</span>}
              <div className={table.sub}>{sentence(rule, rule.webhookIds.map(nameOf))}</div>
            </td>
            <td>
              <SeverityMark severity={rule.severity} />
            </td>
            <td>
              <Open rule={rule} groups={open} />
            </td>
            <td>
              <Raised ruleId={rule.id} ruleName={rule.name} />
            </td>
            <td>
              <Health rule={rule} />
            </td>
            <td data-control>
              <EnabledSwitch rule={rule} mayWrite={mayWrite} />
            </td>
            <td>
              <div className={table.actions}>
                {mayWrite && (
                  <Button look="quiet" iconOnly aria-label={`Delete ${rule.name}`} onClick={() => onDelete(rule)}>
                    <IconTrash size={16} aria-hidden="true" />
                  </Button>
                )}
              </div>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** How many alerts of a rule wait for somebody, and the way to them. */
function Open({ rule, groups }: { rule: Rule; groups: ReadonlyMap<string | undefined, AlertGroup> | undefined }) {
  if (!groups) return <span className={table.quiet}>…</span>;
  const group = groups.get(rule.id);
  if (!group) {
    return (
      <span className={table.quiet}>
        none<span className={table.word}> open</span>
      </span>
    );
  }
  const { firing, acknowledged } = group;
  const state = firing > 0 ? {} : { state: "acknowledged" as const };
  return (
    <Link to="/inbox" search={{ rule: [rule.id], ...state }}>
      {firing > 0 ? `${number(firing)} firing` : `${number(acknowledged)} acknowledged`}
      <span className="visually-hidden"> of {rule.name}</span>
    </Link>
  );
}

function EnabledSwitch({ rule, mayWrite }: { rule: Rule; mayWrite: boolean }) {
  const cache = useQueryClient();
  const toast = useToast();
  const change = useMutation({
    mutationFn: () => setRuleEnabled(rule.id, !rule.enabled),
    onError: (error) => toast(`“${rule.name}” was not changed. ${reasonOf(error)}`, "failed"),
    onSettled: () => cache.invalidateQueries({ queryKey: ruleKeys.all }),
  });
  return (
    <Switch
      size="sm"
      aria-label={`${rule.name} is enabled`}
      checked={change.isPending ? !rule.enabled : rule.enabled}
      disabled={!mayWrite || change.isPending}
      onChange={() => change.mutate()}
    />
  );
}

function DeleteRule({ rule, onClose }: { rule: Rule; onClose: () => void }) {
  return (
    <RemoveDialog
      title={`Delete “${rule.name}”?`}
      action="Delete the rule"
      remove={() => deleteRule(rule.id)}
      done={`“${rule.name}” is deleted.`}
      stale={ruleKeys.all}
      onClose={onClose}
    >
      It raises nothing more. Its open alerts stay until somebody resolves them. This cannot be undone; to stop the rule
      for a while, disable it.
    </RemoveDialog>
  );
}
