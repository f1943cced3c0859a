import { useMutation, useQueryClient } from "@tanstack/react-query";
import type { Rule } from "../api/client";
import { reasonOf } from "../api/errors";
import { useMay } from "../api/operations";
import { retryRule, ruleKeys } from "../api/rules";
import { lateSeconds } from "../frame/facts";
import { Button } from "../ui/Button";
import { Ago, ClockTime } from "../ui/Instant";
import table from "../ui/table.module.css";
import { lag } from "../ui/time";
import { useToast } from "../ui/toast";
import { number, sentenceCase } from "../ui/words";

/** Whether a rule is evaluated, and how far it is behind. */
export function Health({ rule }: { rule: Rule }) {
  const { health, enabled } = rule;
  const mayRetry = useMay()("retryRule");
  if (rule.unreadable) {
    return (
      <>
        <div className={table.bad}>Cannot be read: {rule.unreadable}</div>
        <div className={table.quiet}>Write a new definition, or delete the rule.</div>
      </>
    );
  }
  if (!enabled) return <span className={table.quiet}>Disabled</span>;
  if (health?.lastError) {
    return (
      <>
        <div className={table.bad}>Cannot be evaluated: {health.lastError}</div>
        {health.lastErrorAt && (
          <div className={table.quiet}>
            <Ago at={health.lastErrorAt} />
          </div>
        )}
        {mayRetry && <RetryButton rule={rule} />}
      </>
    );
  }
  if (health?.lagSeconds === undefined) return <Ran at={health?.lastRunAt} />;
  return (
    <>
      <span className={health.lagSeconds > lateSeconds ? table.warn : table.quiet}>
        {sentenceCase(lag(health.lagSeconds))}
      </span>
      {health.backfillFrom && (
        <span
          className={`${table.quiet} ${table.line} ${table.also}`}
          title="Exchanges that arrived late are evaluated alongside new ones, oldest first"
        >
          Backfill from <ClockTime at={health.backfillFrom} />
        </span>
      )}
      {health.lateLastHour ? (
        <span className={`${table.quiet} ${table.line} ${table.also}`} title="In the last hour, found by the look-back">
          {number(health.lateLastHour)} arrived late
        </span>
      ) : null}
    </>
  );
}

/** The lag of a window rule is not known, but the time of its last evaluation is. */
export function Ran({ at }: { at: string | undefined }) {
  return (
    <span className={table.quiet}>
      {at ? (
        <>
          Evaluated <Ago at={at} />
        </>
      ) : (
        "Not evaluated yet"
      )}
    </span>
  );
}

function RetryButton({ rule }: { rule: Rule }) {
  const cache = useQueryClient();
  const toast = useToast();
  const retry = useMutation({
    mutationFn: () => retryRule(rule.id),
    onError: (error) => toast(`“${rule.name}” was not evaluated. ${reasonOf(error)}`, "failed"),
    onSettled: () => cache.invalidateQueries({ queryKey: ruleKeys.all }),
  });
  return (
    <Button look="quiet" busy={retry.isPending} aria-label={`Evaluate ${rule.name} now`} onClick={() => retry.mutate()}>
      Evaluate now
    </Button>
  );
}
