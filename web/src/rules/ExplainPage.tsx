import { TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { type FormEvent, useEffect, useState } from "react";
import type { Exchange, RuleExplanation } from "../api/client";
import { explanation } from "../api/exchanges";
import { Page } from "../frame/Page";
import { Button } from "../ui/Button";
import form from "../ui/form.module.css";
import { ExactTime } from "../ui/Instant";
import { useLastError } from "../ui/lastError";
import { Select } from "../ui/Select";
import { Failed, SkeletonRows } from "../ui/states";
import table from "../ui/table.module.css";
import { counted, number } from "../ui/words";
import styles from "./ExplainPage.module.css";
import { partWords, verdictWords } from "./explain";

/** Why there is an alert about an exchange, or why not, rule by rule. */
export function ExplainPage() {
  const asked = useSearch({ from: "/explain" });
  const { executionId = "" } = asked;
  const query = useQuery({ ...explanation({ ...asked, executionId }), enabled: executionId !== "" });
  const failure = useLastError(query, JSON.stringify(asked));
  useEffect(() => {
    document.title = "Explain · Tocsin";
  }, []);
  return (
    <Page title="Explain" scrolls>
      <Ask key={JSON.stringify(asked)} executionId={executionId} hours={asked.hours ?? day} />
      {executionId === "" ? null : query.data ? (
        <Explained exchange={query.data.exchange} rules={query.data.rules} of={countOf(query.data.counts)} />
      ) : failure ? (
        <Failed error={failure} onRetry={query.refetch} />
      ) : (
        <SkeletonRows count={5} height={48} label="Loading the explanation" />
      )}
    </Page>
  );
}

const countOf = (counts: readonly { rules: number }[]) => counts.reduce((sum, { rules }) => sum + rules, 0);

/** How far back an exchange is searched for, in hours; the last is the most that the API takes. */
const day = 24;
const spans = [
  { hours: day, label: "last 24 h" },
  { hours: 3 * day, label: "last 3 d" },
  { hours: 7 * day, label: "last 7 d" },
];

function Ask({ executionId, hours }: { executionId: string; hours: number }) {
  const [typed, setTyped] = useState(executionId);
  const [last, setLast] = useState(spans.find((span) => span.hours >= hours)?.hours ?? day);
  const navigate = useNavigate();
  const ask = (event: FormEvent) => {
    event.preventDefault();
    if (!typed.trim()) return;
    void navigate({ to: "/explain", search: { executionId: typed.trim(), ...(last === day ? {} : { hours: last }) } });
  };
  return (
    <form className={styles.ask} onSubmit={ask}>
      <TextInput
        label="Execution ID"
        description="Why each rule raised an alert about this exchange, or did not."
        spellCheck={false}
        value={typed}
        onChange={(event) => setTyped(event.currentTarget.value)}
      />
      <Select
        label="Started in the"
        options={spans.map((span) => ({ value: String(span.hours), label: span.label }))}
        value={String(last)}
        onChange={(chosen) => setLast(Number(chosen))}
      />
      <Button type="submit" look="primary">
        Explain
      </Button>
    </form>
  );
}

function Explained({ exchange, rules, of }: { exchange: Exchange; rules: readonly RuleExplanation[]; of: number }) {
  const [all, setAll] = useState(false);
  // A rule that was not armed, or is disabled, has unmet conditions if it would not match either.
  const matching = rules.filter(({ unmet = [] }) => unmet.length === 0);
  const unmatched = rules.length - matching.length;
  const matched = matching.length > 0;
  const shown = all || !matched ? rules : matching;
  return (
    <section className={styles.explained} aria-label="Explanation">
      <p className={styles.exchange}>
        <b>{exchange.application}</b> · {exchange.route}
        {exchange.environment && ` in ${exchange.environment}`}, {exchange.status}, started{" "}
        <ExactTime at={exchange.startTime} />
      </p>
      {rules.length === 0 ? (
        <p>There are no rules.</p>
      ) : (
        <table className={table.table}>
          <thead>
            <tr>
              <th scope="col">Rule</th>
              <th scope="col">Verdict</th>
              <th scope="col">Why</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((rule) => (
              <Row key={rule.ruleId} rule={rule} />
            ))}
          </tbody>
        </table>
      )}
      {matched && unmatched > 0 && (
        <div className={styles.more}>
          <Button onClick={() => setAll(!all)}>
            {all ? "Hide" : "Show"} {counted(unmatched, "rule")} without a match
          </Button>
        </div>
      )}
      {of > rules.length && (
        <p className={form.hint}>
          The first {number(rules.length)} of {number(of)} rules are shown.
        </p>
      )}
    </section>
  );
}

function Row({ rule }: { rule: RuleExplanation }) {
  const { unmet = [] } = rule;
  return (
    <tr>
      <td className={table.name}>
        <Link to="/rules/$ruleId" params={{ ruleId: rule.ruleId }}>
          {rule.ruleName}
        </Link>
      </td>
      <td className={styles.verdict}>{verdictWords[rule.verdict]}</td>
      <td>
        {rule.detail}
        {unmet.length > 0 && ` Not met: ${unmet.map(partWords).join(", ")}.`}{" "}
        {rule.alertId && (
          <Link to="/inbox/$alertId" params={{ alertId: rule.alertId }}>
            Open alert
          </Link>
        )}
      </td>
    </tr>
  );
}
