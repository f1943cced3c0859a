import { Autocomplete, TagsInput, Textarea, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { memo } from "react";
import { teamNames } from "../api/teams";
import { FormSection } from "../ui/Form";
import form from "../ui/form.module.css";
import { bound, type Editor } from "./editor";

/** Information for the people who handle the alerts. */
export const DetailsSection = memo(function DetailsSection({ editor }: { editor: Editor }) {
  const { data: teams = [] } = useQuery(teamNames());
  return (
    <FormSection
      title="Details"
      name="details"
      hint="Shown to the people who handle the alerts, in messages and in the inbox. All fields are optional."
    >
      <div className={form.two}>
        <Autocomplete label="Owner" placeholder="integration team" data={teams} {...bound(editor, "owner")} />
        <TextInput
          label="Runbook"
          type="url"
          placeholder="https://wiki.example/orders"
          spellCheck={false}
          {...bound(editor, "runbookUrl")}
        />
      </div>
      <TagsInput
        label="Labels"
        description="Each as name=value."
        placeholder={editor.form.values.labels.length ? "" : "service=orders"}
        spellCheck={false}
        {...bound(editor, "labels")}
      />
      <Textarea label="Note" rows={3} {...bound(editor, "note")} />
    </FormSection>
  );
});
