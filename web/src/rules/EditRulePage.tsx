import { useQuery } from "@tanstack/react-query";
import { Link, useParams, useSearch } from "@tanstack/react-router";
import { ruleOne } from "../api/rules";
import { Page } from "../frame/Page";
import { useLastError } from "../ui/lastError";
import { Failed, SkeletonColumns } from "../ui/states";
import { RuleEditor } from "./RuleEditor";
import { useRefined } from "./useRefined";

export function EditRulePage() {
  const { ruleId } = useParams({ from: "/rules/$ruleId/edit" });
  const rule = useQuery(ruleOne(ruleId));
  const { wanted, error, proposal } = useRefined(useSearch({ from: "/rules/$ruleId/edit" }), rule.data);
  const failure = useLastError(rule, ruleId) ?? error;
  // The rule can be edited even without its alert.
  if (rule.data !== undefined && (!wanted || proposal || error)) {
    return (
      <RuleEditor
        key={`${ruleId} ${JSON.stringify(proposal?.by)}`}
        rule={rule.data}
        {...(proposal ? { proposal } : {})}
      />
    );
  }
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
