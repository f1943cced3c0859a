import { Checkbox, Input, TagsInput } from "@mantine/core";
import type { GroupBy } from "../api/client";
import { Amount } from "../ui/Amount";
import { CalendarFields } from "../ui/CalendarFields";
import { Choice } from "../ui/Choice";
import styles from "../ui/form.module.css";
import { amount, bound, type Editor } from "./editor";
import { SuggestInput } from "./SuggestInput";
import { initialCalendar, initialValues } from "./values";

const members = [
  { value: "LEARNED", label: "Learned from recent days" },
  { value: "LISTED", label: "A fixed list" },
] as const;

const grouped: Record<GroupBy, { word: string; facet?: "route" | "application" | "environment" }> = {
  ROUTE: { word: "routes", facet: "route" },
  APPLICATION: { word: "applications", facet: "application" },
  ENVIRONMENT: { word: "environments", facet: "environment" },
  ERROR_TYPE: { word: "routes", facet: "route" },
  ATTRIBUTE: { word: "values" },
};

/** Which exchanges are expected, and when. */
export function Absence({ editor }: { editor: Editor }) {
  const { groupBy } = editor.form.values;
  return (
    <>
      {groupBy && <Members editor={editor} groupBy={groupBy} />}
      <Hours editor={editor} />
    </>
  );
}

function Members({ editor, groupBy }: { editor: Editor; groupBy: GroupBy }) {
  const { form, errorOf } = editor;
  const { word, facet } = grouped[groupBy];
  const { applications, environments } = form.values.scope;
  const listed = form.values.learnDays === 0;
  return (
    <div className={styles.two}>
      <Input.Wrapper label={`Expected ${word}`} labelElement="div">
        <Choice
          label={`Expected ${word}`}
          options={members}
          value={listed ? "LISTED" : "LEARNED"}
          onChange={(chosen) => form.setFieldValue("learnDays", chosen === "LISTED" ? 0 : initialValues.learnDays)}
        />
      </Input.Wrapper>
      {listed && !facet && (
        <TagsInput label={`List of ${word}`} placeholder="exact values" {...bound(editor, "expected")} />
      )}
      {listed && facet && (
        <SuggestInput
          label={`List of ${word}`}
          placeholder="exact names"
          facet={facet}
          within={facet === "route" ? { environments, applications } : {}}
          {...bound(editor, "expected")}
        />
      )}
      {!listed && (
        <Amount
          label="Learn from"
          description={`1 to 14 days. Exchanges are expected from all ${word} seen in that time.`}
          units={[{ size: 1, word: "d" }]}
          {...amount(editor, "learnDays")}
          error={errorOf("learnDays") ?? errorOf("expected")}
        />
      )}
    </div>
  );
}

/** When exchanges are expected. */
function Hours({ editor: { form, errorOf } }: { editor: Editor }) {
  const { calendar } = form.values;
  return (
    <>
      <Checkbox
        size="xs"
        label="Expect exchanges only during certain hours"
        checked={calendar !== undefined}
        onChange={(event) =>
          form.setFieldValue("calendar", event.currentTarget.checked ? initialCalendar() : undefined)
        }
      />
      {calendar && (
        <CalendarFields
          value={calendar}
          onChange={(changed) => form.setFieldValue("calendar", changed)}
          errorOf={(field) => errorOf(`calendar.${field}`)}
        />
      )}
    </>
  );
}
