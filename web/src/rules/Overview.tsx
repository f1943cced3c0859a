import { goTo } from "../ui/Form";
import { fieldsOf } from "./definition";
import type { Editor } from "./editor";
import styles from "./editor.module.css";
import { sections, wrongIn } from "./sections";
import { useSectionInView } from "./useSectionInView";

/** The part that stays in view: the rule in plain words, and links to each part of the page. */
export function Overview({ said, editor }: { said: string; editor: Editor }) {
  const current = useSectionInView();
  const known = fieldsOf(editor.form.values);
  return (
    <div className={styles.overview}>
      <p className={styles.said} aria-live="polite">
        {said}
      </p>
      <nav className={styles.sections} aria-label="Parts of the rule">
        {sections.map((section) => {
          const wrong = wrongIn(section, known, editor.errorOf);
          return (
            <button
              key={section.name}
              type="button"
              className={styles.section}
              aria-current={current === section.name ? "true" : undefined}
              onClick={() => goTo(section.name)}
            >
              {section.title}
              {wrong > 0 && (
                <span className={styles.wrong}>
                  {wrong}
                  <span className="visually-hidden"> to correct</span>
                </span>
              )}
            </button>
          );
        })}
        <button type="button" className={`${styles.section} ${styles.narrow}`} onClick={() => goTo("preview")}>
          Preview
        </button>
      </nav>
    </div>
  );
}
