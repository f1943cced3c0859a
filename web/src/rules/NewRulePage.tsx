import { useQuery } from "@tanstack/react-query";
import { me } from "../api/access";
import { mayCall } from "../api/operations";
import { Page } from "../frame/Page";
import { Forbidden } from "../ui/states";
import { RuleEditor } from "./RuleEditor";

export function NewRulePage() {
  const { data: who } = useQuery(me());
  if (who === undefined || mayCall(who, "createRule")) return <RuleEditor />;
  return (
    <Page title="New rule">
      <Forbidden role={who.role} least="editors" />
    </Page>
  );
}
