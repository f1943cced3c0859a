import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { AlertFilter } from "../api/alerts";
import { ruleList } from "../api/rules";
import { buttonClass } from "../ui/Button";
import { IconInbox, IconResolved, IconRules, IconSearch } from "../ui/icons";
import { Empty } from "../ui/states";
import { isNarrowed, toSearch, wide } from "./filter";

/** Why nothing is listed, and what to do about it. */
export function NoAlerts({ filter }: { filter: AlertFilter }) {
  const { data: rules } = useQuery(ruleList());
  if (isNarrowed(filter)) {
    return (
      <Empty icon={IconSearch} title="No alert fits this filter">
        <p>
          <Link to="/inbox" search={toSearch(wide(filter.state))}>
            Show all that are {filter.state.toLowerCase()}
          </Link>
        </p>
      </Empty>
    );
  }
  if (rules?.length === 0) {
    return (
      <Empty icon={IconRules} title="No rule looks at anything yet">
        <p>A rule says which exchanges are worth an alert, and whom to tell.</p>
        <Link to="/rules/new" className={buttonClass("primary")}>
          Create the first rule
        </Link>
      </Empty>
    );
  }
  switch (filter.state) {
    case "FIRING":
      return (
        <Empty icon={IconResolved} title="Nothing is firing">
          <p>New alerts appear here by themselves.</p>
        </Empty>
      );
    case "ACKNOWLEDGED":
      return (
        <Empty icon={IconInbox} title="Nobody is on anything">
          <p>Alerts that somebody has taken on, and not yet resolved, stand here.</p>
        </Empty>
      );
    case "PENDING":
      return (
        <Empty icon={IconInbox} title="Nothing is pending">
          <p>Counts that have reached their threshold, but not for long enough to fire, stand here.</p>
        </Empty>
      );
    case "RESOLVED":
      return <Empty icon={IconInbox} title="Nothing has been resolved yet" />;
  }
}
