import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { AlertFilter } from "../api/alerts";
import { useMay } from "../api/operations";
import { ruleNames } from "../api/rules";
import { buttonClass } from "../ui/Button";
import { IconInbox, IconResolved, IconRules, IconSearch } from "../ui/icons";
import { Empty } from "../ui/states";
import { isNarrowed, toSearch, wide } from "./filter";

/** Why the list is empty, and what to do about it. */
export function NoAlerts({ filter }: { filter: AlertFilter }) {
  const { data: rules } = useQuery(ruleNames());
  const mayCreate = useMay()("createRule");
  if (isNarrowed(filter)) {
    return (
      <Empty icon={IconSearch} title="No matching alerts">
        <p>
          <Link to="/inbox" search={toSearch(wide(filter.state))}>
            Show all {filter.state.toLowerCase()} alerts
          </Link>
        </p>
      </Empty>
    );
  }
  if (rules?.length === 0) {
    return (
      <Empty icon={IconRules} title="No rules yet">
        <p>A rule defines which exchanges raise an alert, and where messages go.</p>
        {mayCreate ? (
          <Link to="/rules/new" className={buttonClass("primary")}>
            Create your first rule
          </Link>
        ) : (
          <p>Editors can create rules.</p>
        )}
      </Empty>
    );
  }
  switch (filter.state) {
    case "FIRING":
      return (
        <Empty icon={IconResolved} title="Nothing is firing">
          <p>New alerts appear here automatically.</p>
        </Empty>
      );
    case "ACKNOWLEDGED":
      return (
        <Empty icon={IconInbox} title="No acknowledged alerts">
          <p>Alerts that have been acknowledged, but not resolved, appear here.</p>
        </Empty>
      );
    case "PENDING":
      return (
        <Empty icon={IconInbox} title="No pending alerts">
          <p>Alerts whose threshold has been reached, but not yet for long enough to fire, appear here.</p>
        </Empty>
      );
    case "RESOLVED":
      return <Empty icon={IconInbox} title="No resolved alerts yet" />;
  }
}
