import { Autocomplete, Checkbox, TextInput } from "@mantine/core";
import { memo } from "react";
import { Amount } from "../ui/Amount";
import { Button } from "../ui/Button";
import { FormSection } from "../ui/Form";
import form from "../ui/form.module.css";
import { IconPlus, IconTrash } from "../ui/icons";
import { Select } from "../ui/Select";
import { amount, bound, type Editor } from "./editor";
import styles from "./editor.module.css";
import { SuggestInput } from "./SuggestInput";
import { useAttributeKeys } from "./useAttributeKeys";

const durations = [
  { size: 1, word: "ms" },
  { size: 1000, word: "s" },
  { size: 60_000, word: "min" },
] as const;

/** What the rule looks for. All of it must hold. */
export const FilterSection = memo(function FilterSection({ editor }: { editor: Editor }) {
  const { environments, applications } = editor.form.values.scope;
  return (
    <FormSection
      title="Filter"
      name="filter"
      hint="What the rule matches. All conditions must hold; a blank one matches everything."
    >
      <Checkbox.Group label="Exchanges that" {...bound(editor, "filter.statuses")}>
        <div className={styles.choices}>
          <Checkbox size="xs" value="FAILED" label="failed" />
          <Checkbox size="xs" value="COMPLETED" label="completed" />
        </div>
      </Checkbox.Group>
      {editor.form.values.filter.statuses.length === 0 && (
        <p className={form.hint}>Neither is selected, so failed exchanges match.</p>
      )}
      <SuggestInput
        label="Error types"
        description="Exactly one of these."
        placeholder="any error"
        facet="errorType"
        within={{ environments, applications }}
        {...bound(editor, "filter.errorTypes")}
      />
      <div className={form.two}>
        <TextInput
          label="Error message contains"
          description="Case-sensitive."
          {...bound(editor, "filter.errorMessageContains")}
        />
        <TextInput
          label="Error message matches"
          description="An RE2 expression, such as timed? ?out"
          spellCheck={false}
          classNames={{ input: form.mono ?? "" }}
          {...bound(editor, "filter.errorMessageMatches")}
        />
        <Amount
          label="Shortest duration"
          placeholder="any"
          units={durations}
          {...amount(editor, "filter.minDurationMs")}
        />
        <Amount
          label="Longest duration"
          placeholder="any"
          units={durations}
          {...amount(editor, "filter.maxDurationMs")}
        />
      </div>
      <Attributes editor={editor} />
    </FormSection>
  );
});

const comparisons = [
  { value: "EQUALS", label: "equals" },
  { value: "EXISTS", label: "exists" },
  { value: "MATCHES", label: "matches" },
];

function Attributes({ editor }: { editor: Editor }) {
  const { form: state } = editor;
  const keys = useAttributeKeys(state.values.scope, state.values.filter.attributes.length > 0);
  return (
    <fieldset className={styles.attributes}>
      <legend>Attributes</legend>
      {editor.errorOf("filter.attributes") && <p className={styles.error}>{editor.errorOf("filter.attributes")}</p>}
      {state.values.filter.attributes.map(({ op }, index) => {
        const field = `filter.attributes[${index}]`;
        return (
          // biome-ignore lint/suspicious/noArrayIndexKey: a row is its place in the list, as the API's complaints name it
          <div key={index} className={styles.attribute}>
            <Autocomplete
              aria-label={`Key ${index + 1}`}
              placeholder="key"
              data={keys}
              {...bound(editor, `${field}.key`)}
            />
            <Select bare label={`Comparison ${index + 1}`} options={comparisons} {...bound(editor, `${field}.op`)} />
            {op === "EXISTS" ? (
              <span />
            ) : (
              <TextInput
                aria-label={`Value ${index + 1}`}
                placeholder={op === "MATCHES" ? "RE2 expression" : "value"}
                spellCheck={false}
                {...bound(editor, `${field}.value`)}
              />
            )}
            <Button
              look="quiet"
              iconOnly
              aria-label={`Remove attribute ${index + 1}`}
              onClick={() => state.removeListItem("filter.attributes", index)}
            >
              <IconTrash size={16} aria-hidden="true" />
            </Button>
          </div>
        );
      })}
      <div>
        <Button onClick={() => state.insertListItem("filter.attributes", { key: "", op: "EQUALS", value: "" })}>
          <IconPlus size={15} aria-hidden="true" />
          Add an attribute
        </Button>
      </div>
    </fieldset>
  );
}
