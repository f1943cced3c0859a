import { useQuery } from "@tanstack/react-query";
import { useSearch } from "@tanstack/react-router";
import { me } from "../api/access";
import { mayCall } from "../api/operations";
import { Page } from "../frame/Page";
import { Failed, Forbidden, SkeletonColumns } from "../ui/states";
import { RuleEditor } from "./RuleEditor";
import { useRefined } from "./useRefined";

export function NewRulePage() {
  const { data: who } = useQuery(me());
  const search = useSearch({ from: "/rules/new" });
  const { wanted, error, proposal } = useRefined(search, undefined);
  if (who !== undefined && !mayCall(who, "createRule")) {
    return (
      <Page title="New rule">
        <Forbidden role={who.role} least="editors" />
      </Page>
    );
  }
  if (!wanted) return <RuleEditor key="blank" />;
  if (proposal) return <RuleEditor key={JSON.stringify(proposal.by)} proposal={proposal} />;
  return (
    <Page title="New rule" scrolls={error !== null}>
      {error === null ? <SkeletonColumns label="Loading the alert" /> : <Failed error={error} />}
    </Page>
  );
}
