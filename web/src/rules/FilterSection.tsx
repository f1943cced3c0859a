import { Autocomplete, Checkbox, TagsInput, TextInput } from "@mantine/core";
import { memo, useEffect, useRef } from "react";
import { Amount } from "../ui/Amount";
import { Button } from "../ui/Button";
import { FormSection } from "../ui/Form";
import form from "../ui/form.module.css";
import { IconPlus, IconTrash } from "../ui/icons";
import { Select } from "../ui/Select";
import { comparisons, numeric } from "./conditions";
import { amount, bound, type Editor } from "./editor";
import styles from "./editor.module.css";
import { SuggestInput } from "./SuggestInput";
import { usualStatuses } from "./statuses";
import { useAttributeKeys } from "./useAttributeKeys";
import { type Attribute, initialAttribute } from "./values";

const durations = [
  { size: 1, word: "ms" },
  { size: 1000, word: "s" },
  { size: 60_000, word: "min" },
] as const;

/** The conditions of the rule. All of them must be met. */
export const FilterSection = memo(function FilterSection({ editor }: { editor: Editor }) {
  const { fireMode, scope } = editor.form.values;
  const { environments, applications } = scope;
  return (
    <FormSection
      title="Filter"
      name="filter"
      hint="What the rule matches. All conditions must be met; a blank field matches everything."
    >
      <Checkbox.Group label="Exchanges that" {...bound(editor, "filter.statuses")}>
        <div className={styles.choices}>
          <Checkbox size="xs" value="FAILED" label="failed" />
          <Checkbox size="xs" value="COMPLETED" label="completed" />
        </div>
      </Checkbox.Group>
      {editor.form.values.filter.statuses.length === 0 && (
        <p className={form.hint}>
          Neither is selected, so {usualStatuses(fireMode).length === 2 ? "both match" : "failed exchanges match"}.
        </p>
      )}
      <div className={form.two}>
        <SuggestInput
          label="Error types"
          description="Exactly one of these."
          placeholder="any error"
          facet="errorType"
          within={{ environments, applications }}
          {...bound(editor, "filter.errorTypes")}
        />
        <SuggestInput
          label="Except error types"
          description="None of these."
          placeholder="none"
          facet="errorType"
          within={{ environments, applications }}
          {...bound(editor, "filter.notErrorTypes")}
        />
        <TextInput
          label="Error message contains"
          description="Case-sensitive."
          {...bound(editor, "filter.errorMessageContains")}
        />
        <TagsInput
          label="Error message does not contain"
          description="None of these texts. Case-sensitive."
          splitChars={[]}
          {...bound(editor, "filter.errorMessageNotContains")}
        />
        <TextInput
          label="Error message matches"
          description="An RE2 expression, such as timed? ?out"
          spellCheck={false}
          classNames={{ input: form.mono ?? "" }}
          {...bound(editor, "filter.errorMessageMatches")}
        />
        <TagsInput
          label="Error message does not match"
          description="None of these RE2 expressions."
          spellCheck={false}
          splitChars={[]}
          {...bound(editor, "filter.errorMessageNotMatches")}
        />
        <Amount
          label="Minimum duration"
          placeholder="any"
          units={durations}
          {...amount(editor, "filter.minDurationMs")}
        />
        <Amount
          label="Maximum duration"
          placeholder="any"
          units={durations}
          {...amount(editor, "filter.maxDurationMs")}
        />
      </div>
      <Attributes editor={editor} />
    </FormSection>
  );
});

const words: Record<Attribute["op"], [string, string]> = {
  EQUALS: ["equals", "does not equal"],
  IN: ["is one of", "is not one of"],
  EXISTS: ["exists", "does not exist"],
  MATCHES: ["matches", "does not match"],
  GREATER_THAN: [">", "not >"],
  AT_LEAST: ["≥", "not ≥"],
  LESS_THAN: ["<", "not <"],
  AT_MOST: ["≤", "not ≤"],
};

const options = comparisons.flatMap((op) =>
  [false, true].map((not) => ({ value: `${not ? "NOT " : ""}${op}`, label: words[op][not ? 1 : 0] })),
);

function Attributes({ editor }: { editor: Editor }) {
  const { form: state } = editor;
  const { attributes } = state.values.filter;
  const keys = useAttributeKeys(state.values.scope, attributes.length > 0);
  // After a click on the button, people type the key.
  const added = useRef(false);
  useEffect(() => {
    if (!added.current) return;
    added.current = false;
    state.getInputNode(`filter.attributes.${attributes.length - 1}.key`)?.focus();
  }, [attributes.length, state.getInputNode]);
  return (
    <fieldset className={styles.attributes}>
      <legend>Attributes</legend>
      {editor.errorOf("filter.attributes") && <p className={styles.error}>{editor.errorOf("filter.attributes")}</p>}
      {attributes.map(({ op, not }, index) => {
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
            <Select
              bare
              label={`Comparison ${index + 1}`}
              options={options}
              value={`${not ? "NOT " : ""}${op}`}
              error={editor.errorOf(`${field}.op`)}
              onChange={(chosen) => {
                state.setFieldValue(`filter.attributes.${index}.not`, chosen.startsWith("NOT "));
                state.setFieldValue(`filter.attributes.${index}.op`, chosen.replace("NOT ", "") as Attribute["op"]);
              }}
            />
            <Compared editor={editor} op={op} index={index} />
            <Button
              look="quiet"
              iconOnly
              data-remove="attributes"
              aria-label={`Remove attribute ${index + 1}`}
              onClick={() => state.removeListItem("filter.attributes", index)}
            >
              <IconTrash size={16} aria-hidden="true" />
            </Button>
          </div>
        );
      })}
      {attributes.some(({ not, op }) => not && op !== "EXISTS") && (
        <p className={form.hint}>A condition with “not” also matches exchanges without the attribute.</p>
      )}
      <div>
        <Button
          data-add="attributes"
          onClick={() => {
            added.current = true;
            state.insertListItem("filter.attributes", { ...initialAttribute });
          }}
        >
          <IconPlus size={15} aria-hidden="true" />
          Add attribute
        </Button>
      </div>
    </fieldset>
  );
}

/** What an attribute is compared with. */
function Compared({ editor, op, index }: { editor: Editor; op: Attribute["op"]; index: number }) {
  const field = `filter.attributes[${index}]`;
  if (op === "EXISTS") return <span />;
  if (op === "IN") {
    return (
      <TagsInput
        aria-label={`Values ${index + 1}`}
        placeholder="values"
        splitChars={[]}
        {...bound(editor, `${field}.values`)}
      />
    );
  }
  return (
    <TextInput
      aria-label={`Value ${index + 1}`}
      placeholder={op === "MATCHES" ? "RE2 expression" : numeric(op) ? "number" : "value"}
      spellCheck={false}
      {...(numeric(op) ? { inputMode: "decimal" as const } : {})}
      {...bound(editor, `${field}.value`)}
    />
  );
}
