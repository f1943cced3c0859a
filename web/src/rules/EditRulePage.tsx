import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { ruleOne } from "../api/rules";
import { Page } from "../frame/Page";
import { useStanding } from "../ui/standing";
import { Failed, SkeletonColumns } from "../ui/states";
import { RuleEditor } from "./RuleEditor";

export function EditRulePage() {
  const { ruleId } = useParams({ from: "/rules/$ruleId" });
  const rule = useQuery(ruleOne(ruleId));
  const failure = useStanding(rule, ruleId);
  if (rule.data !== undefined) return <RuleEditor key={ruleId} rule={rule.data} />;
  return (
    <Page title="Rule" scrolls={failure !== null}>
      {failure === null ? (
        <SkeletonColumns label="Loading the rule" />
      ) : (
        <Failed error={failure} onRetry={rule.refetch}>
          <p>
            <Link to="/rules">Go to the rules</Link>
          </p>
        </Failed>
      )}
    </Page>
  );
}
