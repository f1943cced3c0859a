import { type InfiniteData, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type CSSProperties, type Ref, useState } from "react";
import { type AlertFilter, alertCounts, alertKeys } from "../api/alerts";
import type { AlertPage, Severity } from "../api/client";
import { applicationNames } from "../api/facets";
import { ruleNames } from "../api/rules";
import { Button } from "../ui/Button";
import { FilterMenu } from "../ui/FilterMenu";
import { IconFilter } from "../ui/icons";
import { SeverityMark, severityMeaning, stateMeaning } from "../ui/marks";
import { SearchField } from "../ui/SearchField";
import { number } from "../ui/words";
import { countedAs, type Folding, severities, states, toSearch } from "./filter";
import styles from "./InboxPage.module.css";
import { MoreFilters } from "./MoreFilters";

export function StateTabs({ filter, fold }: { filter: AlertFilter; fold: Folding }) {
  const { data: counts } = useQuery(alertCounts());
  // Few rules wait before they fire; for others the tab is not needed.
  const shown = states.filter((state) => state !== "PENDING" || filter.state === state || (counts?.pending ?? 0) > 0);
  return (
    <nav className={styles.tabs} aria-label="State">
      {shown.map((state) => {
        const { icon: Icon, word, hue } = stateMeaning[state];
        const count = counts?.[countedAs[state]];
        return (
          <Link
            key={state}
            to="/inbox"
            search={toSearch({ ...filter, state }, fold)}
            className={styles.tab}
            style={{ "--hue": hue } as CSSProperties}
            activeOptions={{ exact: true }}
            aria-current={filter.state === state ? "page" : undefined}
          >
            <Icon size={15} stroke={2} aria-hidden="true" />
            {word}
            <span className={styles.count}>{count === undefined ? "" : number(count)}</span>
          </Link>
        );
      })}
    </nav>
  );
}

interface Props {
  filter: AlertFilter;
  onChange: (filter: AlertFilter) => void;
  searchRef: Ref<HTMLInputElement>;
}

export function Filters({ filter, onChange, searchRef }: Props) {
  // Their names are needed to choose one, or to show a chosen one. There may be thousands.
  const [askedRules, setAskedRules] = useState(false);
  const { data: rules } = useQuery({ ...ruleNames(), enabled: askedRules || filter.ruleId.length > 0 });
  const seen = useKnownApplications();
  const [asked, setAsked] = useState(false);
  const [more, setMore] = useState(false);
  const { data: frequent = [] } = useQuery({ ...applicationNames(), enabled: asked });
  const applications = [...new Set([...seen, ...frequent])].sort();
  return (
    <search className={styles.filters}>
      <FilterMenu
        name="Severity"
        choices={severities.map((value) => ({
          value,
          text: severityMeaning[value].word,
          look: <SeverityMark severity={value} />,
        }))}
        chosen={filter.severity}
        onChange={(chosen) => onChange({ ...filter, severity: chosen as Severity[] })}
      />
      <FilterMenu
        name="Application"
        search
        free
        onOpen={() => setAsked(true)}
        choices={applications.map((value) => ({ value, text: value }))}
        chosen={filter.application}
        onChange={(application) => onChange({ ...filter, application })}
      />
      <FilterMenu
        name="Rule"
        search
        onOpen={() => setAskedRules(true)}
        choices={(rules ?? []).map((rule) => ({ value: rule.id, text: rule.name }))}
        chosen={filter.ruleId}
        unknown={rules ? "deleted rule" : "…"}
        onChange={(ruleId) => onChange({ ...filter, ruleId })}
      />
      <Button onClick={() => setMore(true)}>
        <IconFilter size={15} aria-hidden="true" />
        <span className={styles.moreWord}>More</span>
        <span className="visually-hidden"> filters</span>
      </Button>
      {more && <MoreFilters filter={filter} onChange={onChange} onClose={() => setMore(false)} />}
      <SearchField
        label="Search title and message"
        value={filter.q}
        onChange={(q) => onChange({ ...filter, q })}
        inputRef={searchRef}
      />
    </search>
  );
}

/** The applications of all alerts that this page has seen. */
function useKnownApplications(): readonly string[] {
  const cache = useQueryClient();
  const names = new Set<string>();
  for (const [, data] of cache.getQueriesData<InfiniteData<AlertPage>>({ queryKey: alertKeys.lists })) {
    for (const page of data?.pages ?? []) {
      for (const { exchange } of page.items) if (exchange) names.add(exchange.application);
    }
  }
  return [...names].sort();
}
