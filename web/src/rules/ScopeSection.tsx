import { Fragment, memo } from "react";
import { FormSection } from "../ui/Form";
import form from "../ui/form.module.css";
import { bound, type Editor } from "./editor";
import { SuggestInput } from "./SuggestInput";

const lists = [
  {
    list: "applications",
    except: "notApplications",
    label: "Applications",
    word: "applications",
    facet: "application",
  },
  { list: "routes", except: "notRoutes", label: "Routes", word: "routes", facet: "route" },
  {
    list: "environments",
    except: "notEnvironments",
    label: "Environments",
    word: "environments",
    facet: "environment",
  },
] as const;

/** The scope of the rule. Values of the last day are offered. */
export const ScopeSection = memo(function ScopeSection({ editor }: { editor: Editor }) {
  const { environments, applications } = editor.form.values.scope;
  const within = {
    application: { environments },
    route: { environments, applications },
    environment: { applications },
  };
  return (
    <FormSection
      title="Scope"
      name="scope"
      hint="Where the rule applies. * matches any characters, as in billing-*. Leave blank for everywhere."
    >
      <div className={form.two}>
        {lists.map(({ list, except, label, word, facet }) => (
          <Fragment key={list}>
            <SuggestInput
              label={label}
              placeholder={`all ${word}`}
              facet={facet}
              within={within[facet]}
              {...bound(editor, `scope.${list}`)}
            />
            <SuggestInput
              label={`Except ${word}`}
              placeholder="none"
              facet={facet}
              within={within[facet]}
              {...bound(editor, `scope.${except}`)}
            />
          </Fragment>
        ))}
      </div>
    </FormSection>
  );
});
