import { RuleEditor } from "./RuleEditor";

export function NewRulePage() {
  return <RuleEditor />;
}
