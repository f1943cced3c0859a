import { TagsInput, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { actorOf, me } from "../api/access";
import { type AlertFilter, assignees } from "../api/alerts";
import { facets } from "../api/exchanges";
import { useMay } from "../api/operations";
import { FormDialog } from "../ui/FormDialog";
import form from "../ui/form.module.css";
import { InstantInput } from "../ui/InstantInput";
import { Select } from "../ui/Select";
import { isAttribute, spans, twoValues } from "./filter";

interface Props {
  filter: AlertFilter;
  onChange: (filter: AlertFilter) => void;
  onClose: () => void;
}

/** The filters that are needed less often: where and when exchanges ran, and which ones. */
export function MoreFilters({ filter, onChange, onClose }: Props) {
  const [draft, setDraft] = useState(filter);
  const [problem, setProblem] = useState<string>();
  const environments = useQuery(facets("environment", "", {})).data?.map(({ value }) => value) ?? [];
  const may = useMay()("listAssignees");
  const { data: people = [] } = useQuery({ ...assignees(), enabled: may });
  const own = actorOf(useQuery(me()).data);
  const names = [...new Set([...(own ? [own] : []), ...people, ...draft.assignee.filter(Boolean)])];
  const change = (part: Partial<AlertFilter>) => setDraft((before) => ({ ...before, ...part }));
  const submit = () => {
    const wrong = draft.attribute.find((text) => !isAttribute(text));
    if (wrong !== undefined) {
      return setProblem(`“${wrong}” must be a key, an equals sign and a value, such as region=eu.`);
    }
    const twice = twoValues(draft.attribute);
    if (twice !== undefined) {
      return setProblem(
        `Attributes must not have two values for “${twice}”, because no alert could match; remove one of them.`,
      );
    }
    if (draft.from && draft.to && draft.to < draft.from) {
      return setProblem("“To” must not be before “From”, because no alert could match.");
    }
    onChange({ ...draft, hours: draft.from || draft.to ? 0 : draft.hours });
    onClose();
  };
  return (
    <FormDialog wide title="Filters" action="Apply" problem={problem} onSubmit={submit} onClose={onClose}>
      <Select
        label="Fired"
        options={spans.map(({ label, hours }) => ({ value: String(hours), label }))}
        value={String(draft.hours)}
        onChange={(hours) => change({ hours: Number(hours), from: "", to: "" })}
      />
      <div className={form.two}>
        <InstantInput label="From" value={draft.from} onChange={(from) => change({ from })} />
        <InstantInput label="To" value={draft.to} onChange={(to) => change({ to })} />
      </div>
      <div className={form.two}>
        <Select
          label="Assigned to"
          options={[
            { value: "any", label: "Any" },
            { value: "none", label: "Unassigned" },
            ...names.map((name) => ({ value: `=${name}`, label: name })),
          ]}
          value={choiceOf(draft.assignee)}
          onChange={(choice) =>
            change({ assignee: choice === "any" ? [] : [choice === "none" ? "" : choice.slice(1)] })
          }
        />
        <Select
          label="Snoozed"
          options={[
            { value: "any", label: "Any" },
            { value: "no", label: "Not snoozed" },
            { value: "yes", label: "Snoozed" },
          ]}
          value={draft.snoozed}
          onChange={(snoozed) => change({ snoozed })}
        />
      </div>
      <TagsInput
        comboboxProps={{ withinPortal: false }}
        label="Environments"
        placeholder={draft.environment.length === 0 ? "Any" : ""}
        data={environments.filter(Boolean)}
        value={[...draft.environment]}
        onChange={(environment) => change({ environment })}
      />
      <div className={form.two}>
        <TextInput
          label="Execution ID"
          autoComplete="off"
          spellCheck={false}
          value={draft.executionId}
          onChange={(event) => change({ executionId: event.currentTarget.value.trim() })}
        />
        <TextInput
          label="Correlation ID"
          autoComplete="off"
          spellCheck={false}
          value={draft.correlationId}
          onChange={(event) => change({ correlationId: event.currentTarget.value.trim() })}
        />
      </div>
      <TagsInput
        comboboxProps={{ withinPortal: false }}
        label="Attributes"
        description="Each as key=value. All of them must match."
        placeholder={draft.attribute.length === 0 ? "region=eu" : ""}
        value={[...draft.attribute]}
        onChange={(attribute) => change({ attribute })}
      />
    </FormDialog>
  );
}

/** The first assignee, in the form of the list; an address may name several. */
function choiceOf([first]: readonly string[]): string {
  if (first === undefined) return "any";
  return first === "" ? "none" : `=${first}`;
}
