import { FormSection } from "../ui/Form";
import styles from "./editor.module.css";
import { starters } from "./starters";
import type { Values } from "./values";

/** Rules to begin with, for people who have no rules yet. */
export function Starters({ onChoose }: { onChoose: (values: Values) => void }) {
  return (
    <FormSection title="Start from a template" hint="Everything can be changed before you save.">
      <div className={styles.starters}>
        {starters.map(({ name, explains, values }) => (
          <button key={name} type="button" className={styles.starter} onClick={() => onChoose(structuredClone(values))}>
            <b>{name}</b>
            <span>{explains}</span>
          </button>
        ))}
      </div>
    </FormSection>
  );
}
