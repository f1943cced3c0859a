import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { ruleOne } from "../api/rules";
import { Page } from "../app/Page";
import { Failed, SkeletonRows } from "../ui/states";
import { RuleEditor } from "./RuleEditor";

export function EditRulePage() {
  const { ruleId } = useParams({ from: "/rules/$ruleId" });
  const rule = useQuery(ruleOne(ruleId));
  if (rule.data !== undefined) return <RuleEditor key={ruleId} rule={rule.data} />;
  return (
    <Page title="Rule" scrolls>
      {rule.isPending ? (
        <SkeletonRows count={5} height={64} label="Loading the rule" />
      ) : (
        <Failed error={rule.error} onRetry={() => void rule.refetch()}>
          <p>
            <Link to="/rules">Go to the rules</Link>
          </p>
        </Failed>
      )}
    </Page>
  );
}
