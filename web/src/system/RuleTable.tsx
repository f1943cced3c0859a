import { useMutation } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import type { Rule } from "../api/client";
import { reasonOf } from "../api/errors";
import { useMay } from "../api/operations";
import { reconcileRule, useRuleHealth } from "../api/rules";
import { lateSeconds } from "../frame/facts";
import { Ran } from "../rules/Health";
import { Raised } from "../rules/Raised";
import { Button } from "../ui/Button";
import { Ago, ClockTime } from "../ui/Instant";
import { useLastError } from "../ui/lastError";
import { SkeletonRows } from "../ui/states";
import table from "../ui/table.module.css";
import { lag } from "../ui/time";
import { number, sentenceCase } from "../ui/words";
import { evaluatedUntil } from "./charts";
import { byTrouble, comparison } from "./rules";
import styles from "./system.module.css";
import { Unknown } from "./Unknown";

const shownFirst = 10;

/** The progress of each rule. There may be thousands; rules with problems come first. */
export function RuleTable() {
  const rules = useRuleHealth();
  const failure = useLastError(rules);
  const may = useMay()("reconcileRule");
  const [all, setAll] = useState(false);
  if (rules.data === undefined) {
    return failure ? (
      <Unknown what="The rules could not be loaded." error={failure} onRetry={rules.refetch} />
    ) : (
      <SkeletonRows headed count={4} height={69} label="Loading rules" />
    );
  }
  if (rules.data.length === 0) return <p className={styles.fine}>No rules yet.</p>;
  const sorted = byTrouble(rules.data);
  const shown = all ? sorted : sorted.slice(0, shownFirst);
  return (
    <>
      <table className={`${table.table} ${styles.rules}`}>
        <thead>
          <tr>
            <th scope="col">Rule</th>
            <th scope="col">Lag</th>
            <th scope="col">Evaluated through</th>
            <th scope="col">Alerts in the last hour</th>
            <th scope="col">Last run</th>
            <th scope="col">
              <span className="visually-hidden">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {shown.map((rule) => (
            <RuleRow key={rule.id} rule={rule} may={may} />
          ))}
        </tbody>
      </table>
      {shown.length < sorted.length && (
        <p className={styles.fine}>
          <Button onClick={() => setAll(true)}>Show all {number(sorted.length)} rules</Button>
        </p>
      )}
    </>
  );
}

function RuleRow({ rule, may }: { rule: Rule; may: boolean }) {
  const compare = useMutation({ mutationFn: () => reconcileRule(rule.id) });
  const { lagSeconds, cursor, lateLastHour = 0, lastRunAt, lastError } = rule.health ?? {};
  const evaluated = evaluatedUntil(cursor);
  return (
    <tr>
      <td>
        <Link to="/rules/$ruleId" params={{ ruleId: rule.id }} className={table.name}>
          {rule.name}
        </Link>
        {lastError && <div className={table.bad}>{lastError}</div>}
        {compare.data && (
          <div className={compare.data.missing > 0 ? table.bad : table.sub} role="status">
            {comparison(compare.data, rule.fireMode)}
          </div>
        )}
        {compare.error && (
          <div className={table.bad} role="alert">
            Not compared. {reasonOf(compare.error)}
          </div>
        )}
      </td>
      <td>
        {!rule.enabled ? (
          <span className={table.quiet}>Disabled</span>
        ) : lagSeconds === undefined ? (
          <Ran at={lastRunAt} />
        ) : (
          <span className={lagSeconds > lateSeconds ? table.warn : ""}>{sentenceCase(lag(lagSeconds))}</span>
        )}
      </td>
      <td>
        {evaluated ? (
          <span title={cursor}>
            <span className={styles.word}>evaluated through </span>
            <ClockTime at={evaluated} />
          </span>
        ) : (
          <span className={table.quiet}>–</span>
        )}
      </td>
      <td>
        <Raised ruleId={rule.id} ruleName={rule.name} />
        {lateLastHour > 0 && (
          <div className={table.sub} title="Found by the look-back">
            {number(lateLastHour)} arrived late
          </div>
        )}
      </td>
      <td>
        {lastRunAt ? (
          <>
            Ran <Ago at={lastRunAt} />
          </>
        ) : (
          <span className={table.quiet}>Never run</span>
        )}
      </td>
      <td>
        <div className={table.actions}>
          {may && (
            <Button
              look="quiet"
              title="Compare the alerts with the matching exchanges"
              aria-label={`Compare ${rule.name}`}
              busy={compare.isPending}
              onClick={() => compare.mutate()}
            >
              {compare.isPending ? "Comparing…" : "Compare"}
            </Button>
          )}
        </div>
      </td>
    </tr>
  );
}
