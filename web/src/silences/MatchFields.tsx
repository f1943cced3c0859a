import { Checkbox, MultiSelect, TagsInput, Textarea, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { Severity } from "../api/client";
import { ruleNames } from "../api/rules";
import { SuggestInput } from "../rules/SuggestInput";
import formStyles from "../ui/form.module.css";
import { severityMeaning } from "../ui/marks";
import type { MatchValues } from "./form";
import styles from "./silences.module.css";

const severities: readonly Severity[] = ["CRITICAL", "WARNING", "INFO"];

const places = [
  ["applications", "Applications", "application"],
  ["notApplications", "Except applications", "application"],
  ["routes", "Routes", "route"],
  ["notRoutes", "Except routes", "route"],
  ["environments", "Environments", "environment"],
  ["notEnvironments", "Except environments", "environment"],
] as const;

/** What the fields need from their form. */
interface Of {
  values: MatchValues;
  // biome-ignore lint/suspicious/noExplicitAny: as the form says
  getInputProps: (field: string) => any;
}

/** The label for routes of exchanges if the form is itself about a route. */
const exchangeRoutes: Record<string, string> = { routes: "Exchange routes", notRoutes: "Except exchange routes" };

/** The conditions of a match. */
export function MatchFields({ form, ofRoute = false }: { form: Of; ofRoute?: boolean }) {
  const { data: rules } = useQuery(ruleNames());
  const choices = (rules ?? []).map(({ id, name }) => ({ value: id, label: name }));
  // A chosen rule without a name would be shown by its ID.
  const nameless = form.values.rules.filter((id) => !choices.some(({ value }) => value === id));
  const { environments, applications } = form.values.scope;
  const within = {
    application: { environments },
    route: { environments, applications },
    environment: { applications },
  };
  return (
    <>
      <MultiSelect
        label="Rules"
        {...(form.values.rules.length === 0 ? { placeholder: "all rules" } : {})}
        searchable
        data={[...choices, ...nameless.map((id) => ({ value: id, label: rules ? "deleted rule" : "…" }))]}
        {...form.getInputProps("rules")}
      />
      <Checkbox.Group label="Severities" {...form.getInputProps("severities")}>
        <div className={styles.days}>
          {severities.map((value) => (
            <Checkbox key={value} size="xs" value={value} label={severityMeaning[value].word} />
          ))}
        </div>
      </Checkbox.Group>
      <div className={formStyles.two}>
        {places.map(([list, label, facet]) => (
          <SuggestInput
            key={list}
            label={(ofRoute && exchangeRoutes[list]) || label}
            placeholder={list.startsWith("not") ? "none" : "all"}
            facet={facet}
            within={within[facet]}
            {...form.getInputProps(`scope.${list}`)}
          />
        ))}
        <SuggestInput
          label="Error types"
          placeholder="any error"
          facet="errorType"
          within={{ environments, applications }}
          {...form.getInputProps("errorTypes")}
        />
        <TagsInput
          label="Except error types"
          placeholder={form.values.notErrorTypes.length > 0 ? "" : "none"}
          splitChars={[]}
          {...form.getInputProps("notErrorTypes")}
        />
        <TextInput label="Error message contains" {...form.getInputProps("messageContains")} />
        <TextInput
          label="Error message matches"
          placeholder="RE2 expression"
          spellCheck={false}
          {...form.getInputProps("messageMatches")}
        />
        <Textarea
          label="Rule labels"
          description="One condition per line: team = orders, tier >= 2, team in a, b"
          rows={2}
          spellCheck={false}
          {...form.getInputProps("labels")}
        />
        <Textarea
          label="Exchange attributes"
          description="One condition per line: customer = 42, host ~ ^db"
          rows={2}
          spellCheck={false}
          {...form.getInputProps("attributes")}
        />
      </div>
    </>
  );
}
