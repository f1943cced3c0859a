import { memo } from "react";
import { FormSection } from "../ui/Form";
import form from "../ui/form.module.css";
import { bound, type Editor } from "./editor";
import { SuggestInput } from "./SuggestInput";

/** Where the rule looks. What is offered is what occurred in the last day. */
export const ScopeSection = memo(function ScopeSection({ editor }: { editor: Editor }) {
  const { environments, applications } = editor.form.values.scope;
  return (
    <FormSection
      title="Scope"
      name="scope"
      hint="Where the rule applies. * matches any characters, as in billing-*. Leave blank for everywhere."
    >
      <div className={form.two}>
        <SuggestInput
          label="Applications"
          placeholder="all applications"
          facet="application"
          within={{ environments }}
          {...bound(editor, "scope.applications")}
        />
        <SuggestInput
          label="Routes"
          placeholder="all routes"
          facet="route"
          within={{ environments, applications }}
          {...bound(editor, "scope.routes")}
        />
        <SuggestInput
          label="Environments"
          placeholder="all environments"
          facet="environment"
          within={{ applications }}
          {...bound(editor, "scope.environments")}
        />
      </div>
    </FormSection>
  );
});
