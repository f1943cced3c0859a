import { Checkbox, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { alertActivity } from "../api/activity";
import type { AlertGroup, Rule } from "../api/client";
import { useMay } from "../api/operations";
import { deleteRule, openAlerts, ruleKeys, useRuleHealth } from "../api/rules";
import { webhookList } from "../api/webhooks";
import { useDrafted } from "../drafts/useDrafted";
import { Page } from "../frame/Page";
import { Button, buttonClass } from "../ui/Button";
import { IconCopy, IconPlus, IconRules, IconSearch, IconTrash } from "../ui/icons";
import { useLastError } from "../ui/lastError";
import { SeverityMark } from "../ui/marks";
import { RemoveDialog } from "../ui/RemoveDialog";
import { Select } from "../ui/Select";
import { Empty, Failed, SkeletonRows } from "../ui/states";
import table from "../ui/table.module.css";
import { useHash } from "../ui/useHash";
import { useTyped } from "../ui/useTyped";
import { counted, number } from "../ui/words";
import { BulkEnable } from "./BulkEnable";
import { ruleKind } from "./drafts";
import { EnabledSwitch } from "./EnabledSwitch";
import { Health } from "./Health";
import {
  downTo,
  type Facts,
  found,
  longest,
  nextSort,
  parseRulesSearch,
  type RulesSearch,
  type SortKey,
  sorted,
} from "./list";
import { Raised } from "./Raised";
import styles from "./rules.module.css";
import { recipientNames, sentence } from "./sentence";
import { useDuplicate } from "./useDuplicate";

export function RulesPage() {
  const rules = useRuleHealth();
  const failure = useLastError(rules);
  // The content of a row is loaded before the row is shown, unless it is not available.
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
        <>
          <Link to="/explain" className={buttonClass()} title="Why an exchange raised an alert, or did not">
            Explain<span className="visually-hidden"> an exchange</span>
          </Link>
          {mayWrite && (
            <Link to="/rules/new" data-add="rules" className={buttonClass("primary")}>
              <IconPlus size={16} aria-hidden="true" />
              {drafted(undefined) ? "Continue new rule" : "New rule"}
            </Link>
          )}
        </>
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
              Create your first rule
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

/** There may be thousands of rules; the search and the order cover all of them. */
const shownAtOnce = 100;

const columns: readonly { by: SortKey; head: string }[] = [
  { by: "name", head: "Rule" },
  { by: "severity", head: "Severity" },
  { by: "open", head: "Open alerts" },
  { by: "hour", head: "Last hour" },
  { by: "lag", head: "Health" },
];

function RuleTable({ rules, mayWrite, onDelete }: TableProps) {
  const search = useSearch({ from: "/rules" });
  const navigate = useNavigate();
  const { data: webhooks } = useQuery(webhookList());
  const { data: open } = useQuery(openAlerts());
  const { data: activity } = useQuery(alertActivity());
  const nameOf = (id: string) => webhooks?.find((webhook) => webhook.id === id)?.name ?? "a webhook";
  const facts: Facts = {
    open,
    raised: new Map(activity?.rules.map(({ ruleId, buckets }) => [ruleId, buckets])),
    said: (rule) => sentence(rule, recipientNames(rule, nameOf)),
  };
  const shown = sorted(found(rules, search.q ?? "", facts), search.sort ?? "name", search.reverse !== undefined, facts);
  const [most, setMost] = useState(shownAtOnce);
  const hash = useHash();
  const onPage = shown.slice(0, downTo(shown, most, hash));
  const [picked, setPicked] = useState<ReadonlySet<string>>(new Set());
  const chosen = shown.filter(({ id }) => picked.has(id));
  const go = (next: RulesSearch) => void navigate({ to: "/rules", search: next, replace: true });
  const { typed, setTyped, report } = useTyped(search.q ?? "", (q) => go(parseRulesSearch({ ...search, q })));
  const pick = (id: string) => {
    const next = new Set(picked);
    if (!next.delete(id)) next.add(id);
    setPicked(next);
  };
  return (
    <>
      <div className={styles.tools}>
        <TextInput
          type="search"
          size="xs"
          aria-label="Search rules"
          placeholder="Search rules"
          leftSection={<IconSearch size={14} aria-hidden="true" />}
          maxLength={longest}
          value={typed}
          onChange={(event) => {
            setTyped(event.currentTarget.value);
            report(event.currentTarget.value);
          }}
        />
        <span className={styles.narrow}>
          <Select
            bare
            label="Sort by"
            options={columns.map(({ by, head }) => ({ value: by, label: `Sort by ${head.toLowerCase()}` }))}
            value={search.sort ?? "name"}
            onChange={(sort) => go(parseRulesSearch({ q: search.q, sort }))}
          />
        </span>
        <span className={styles.count} role="status">
          {search.q ? `${number(shown.length)} of ${counted(rules.length, "rule")}` : counted(rules.length, "rule")}
        </span>
        {mayWrite && chosen.length > 0 && (
          <BulkEnable rules={chosen} onPage={onPage} onDone={() => setPicked(new Set())} />
        )}
      </div>
      {shown.length === 0 && (
        <Empty icon={IconSearch} title="No matching rules">
          <Button onClick={() => go({})}>Clear search</Button>
        </Empty>
      )}
      {shown.length > 0 && (
        <table className={table.table}>
          <thead>
            <tr>
              {mayWrite && (
                <th scope="col" className={styles.check}>
                  <Checkbox
                    size="xs"
                    aria-label="Select all rules"
                    checked={chosen.length === shown.length}
                    indeterminate={chosen.length > 0 && chosen.length < shown.length}
                    onChange={(event) =>
                      setPicked(new Set(event.currentTarget.checked ? shown.map(({ id }) => id) : []))
                    }
                  />
                </th>
              )}
              {columns.map((column) => (
                <SortHead key={column.by} {...column} search={search} onSort={go} />
              ))}
              <th scope="col">Enabled</th>
              <th scope="col">
                <span className="visually-hidden">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {onPage.map((rule) => (
              <RuleRow
                key={rule.id}
                rule={rule}
                said={facts.said(rule)}
                open={open}
                mayWrite={mayWrite}
                current={rule.id === hash}
                picked={picked.has(rule.id)}
                onPick={() => pick(rule.id)}
                onDelete={() => onDelete(rule)}
              />
            ))}
          </tbody>
        </table>
      )}
      {shown.length > onPage.length && (
        <p className={styles.more}>
          <Button onClick={() => setMost(onPage.length + shownAtOnce)}>
            Show {number(Math.min(shownAtOnce, shown.length - onPage.length))} more of {counted(shown.length, "rule")}
          </Button>
        </p>
      )}
    </>
  );
}

interface SortHeadProps {
  by: SortKey;
  head: string;
  search: RulesSearch;
  onSort: (next: RulesSearch) => void;
}

/** The header of a column, which sorts the list when pressed. Names ascend first, everything else descends first. */
function SortHead({ by, head, search, onSort }: SortHeadProps) {
  const active = (search.sort ?? "name") === by;
  const ascends = (by === "name") !== (search.reverse !== undefined);
  return (
    <th scope="col" aria-sort={active ? (ascends ? "ascending" : "descending") : undefined}>
      <button type="button" className={styles.sort} onClick={() => onSort(nextSort(search, by))}>
        {head}
        {active && <span aria-hidden="true">{ascends ? "↑" : "↓"}</span>}
      </button>
    </th>
  );
}

interface RowProps {
  rule: Rule;
  said: string;
  open: Facts["open"];
  mayWrite: boolean;
  /** Whether the address names it. */
  current: boolean;
  picked: boolean;
  onPick: () => void;
  onDelete: () => void;
}

function RuleRow({ rule, said, open, mayWrite, current, picked, onPick, onDelete }: RowProps) {
  const drafted = useDrafted(ruleKind);
  const duplicate = useDuplicate(() => undefined);
  return (
    <tr id={rule.id} aria-current={current || undefined}>
      {mayWrite && (
        <td className={styles.check}>
          <Checkbox size="xs" aria-label={`Select ${rule.name}`} checked={picked} onChange={onPick} />
        </td>
      )}
      <td>
        <Link to="/rules/$ruleId" params={{ ruleId: rule.id }} className={table.name}>
          {rule.name}
        </Link>
        {mayWrite && drafted(rule.id) && <span className={table.draft}>unsaved changes</span>}
        <div className={table.sub}>{said}</div>
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
      <td className={styles.health}>
        <Health rule={rule} />
      </td>
      <td data-control>
        <EnabledSwitch rule={rule} mayWrite={mayWrite} />
      </td>
      <td>
        <div className={table.actions}>
          {mayWrite && (
            <>
              <span className={styles.duplicate}>
                <Button
                  look="quiet"
                  iconOnly
                  aria-label={`Duplicate ${rule.name}`}
                  title="Duplicate"
                  busy={duplicate.isPending}
                  onClick={() => duplicate.mutate(rule)}
                >
                  <IconCopy size={16} aria-hidden="true" />
                </Button>
              </span>
              <Button
                look="quiet"
                iconOnly
                data-remove="rules"
                aria-label={`Delete ${rule.name}`}
                title="Delete"
                onClick={onDelete}
              >
                <IconTrash size={16} aria-hidden="true" />
              </Button>
            </>
          )}
        </div>
      </td>
    </tr>
  );
}

/** How many alerts of a rule wait for somebody, and a link to them. */
function Open({ rule, groups }: { rule: Rule; groups: ReadonlyMap<string | undefined, AlertGroup> | undefined }) {
  if (!groups) return <span className={table.quiet}>…</span>;
  const group = groups.get(rule.id);
  if (!group) {
    return (
      <span className={table.quiet}>
        None<span className={table.word}> open</span>
      </span>
    );
  }
  const { firing, acknowledged } = group;
  const state = firing > 0 ? {} : { state: "acknowledged" as const };
  return (
    <Link to="/inbox" search={{ rule: [rule.id], ...state }} className={styles.open}>
      {firing > 0 ? `${number(firing)} firing` : `${number(acknowledged)} acknowledged`}
      <span className="visually-hidden"> of {rule.name}</span>
    </Link>
  );
}

function DeleteRule({ rule, onClose }: { rule: Rule; onClose: () => void }) {
  return (
    <RemoveDialog
      title={`Delete “${rule.name}”?`}
      action="Delete rule"
      remove={() => deleteRule(rule.id)}
      done={`“${rule.name}” was deleted.`}
      notDone={`“${rule.name}” was not deleted.`}
      stale={ruleKeys.all}
      onClose={onClose}
    >
      It raises no more alerts. Its open alerts stay open until someone resolves them. This cannot be undone; to stop
      the rule for a while, disable it instead.
    </RemoveDialog>
  );
}
