import { Autocomplete, Checkbox } from "@mantine/core";
import { Amount } from "../ui/Amount";
import styles from "../ui/form.module.css";
import { Select } from "../ui/Select";
import { bound, type Editor } from "./editor";
import { useAttributeKeys } from "./useAttributeKeys";
import { initialResolution, type Resolution as Values } from "./values";

const kinds: { value: Values["evidence"]; label: string }[] = [
  { value: "", label: "No exchange" },
  { value: "CORRELATION_ID", label: "Same route and correlation ID" },
  { value: "ATTRIBUTE", label: "Same route and attribute" },
];

/** What resolves the alerts of a rule about single exchanges, in addition to people. */
export function Resolution({ editor }: { editor: Editor }) {
  const { form } = editor;
  const { resolution } = form.values;
  return (
    <>
      <Checkbox
        size="xs"
        label="Resolve open alerts by age, or when a later exchange completes"
        checked={resolution !== undefined}
        onChange={(event) => {
          form.setFieldValue("resolution", event.currentTarget.checked ? initialResolution : undefined);
          form.setFieldValue("notifyOnResolve", false);
        }}
      />
      {resolution && <Kinds editor={editor} resolution={resolution} />}
    </>
  );
}

function Kinds({ editor, resolution }: { editor: Editor; resolution: Values }) {
  const { form, errorOf } = editor;
  const keys = useAttributeKeys(form.values.scope, resolution.evidence === "ATTRIBUTE");
  const set = (change: Partial<Values>) => form.setFieldValue("resolution", { ...resolution, ...change });
  return (
    <>
      <div className={styles.two}>
        <Amount
          label="Resolve after"
          description="The time since the alert fired; 1 min to 1 year, 0 means never."
          units={[
            { size: 1, word: "s" },
            { size: 60, word: "min" },
            { size: 3600, word: "h" },
            { size: 86_400, word: "d" },
          ]}
          value={resolution.afterSeconds}
          error={errorOf("resolution.afterSeconds") ?? errorOf("resolution")}
          onChange={(afterSeconds) => set({ afterSeconds })}
        />
        <Select
          label="Resolve when this completes"
          description="A later exchange: one that started after the failed one had ended."
          options={kinds}
          value={resolution.evidence}
          error={errorOf("resolution.evidence")}
          onChange={(evidence) => set({ evidence })}
        />
        {resolution.evidence === "ATTRIBUTE" && (
          <Autocomplete
            label="Attribute"
            placeholder="key"
            data={keys}
            value={resolution.attribute}
            error={errorOf("resolution.attribute")}
            onChange={(attribute) => set({ attribute })}
          />
        )}
      </div>
      <Checkbox
        size="xs"
        label="Send a message when an alert resolves by age or by a later exchange"
        {...bound(editor, "notifyOnResolve", { type: "checkbox" })}
      />
    </>
  );
}
