import { type FormEvent, type ReactNode, useEffect, useId, useRef } from "react";
import styles from "./form.module.css";

interface Props {
  /** The server's errors about the whole form, or about fields that it does not have. */
  problems: readonly string[];
  /** Changes with each refusal, so that the first field in error takes the focus. */
  refusals: number;
  onSubmit: () => void;
  children: ReactNode;
}

export function Form({ problems, refusals, onSubmit, children }: Props) {
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    if (refusals === 0) return;
    focusOnError(form.current);
  }, [refusals]);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    onSubmit();
  };
  return (
    <form ref={form} className={styles.form} onSubmit={submit} noValidate>
      {problems.length > 0 && (
        <div className={styles.problems} role="alert" tabIndex={-1} data-problems="">
          {problems.map((problem) => (
            <p key={problem}>{problem}</p>
          ))}
        </div>
      )}
      {children}
    </form>
  );
}

/** Moves the focus to the first field in error, or to the first error that has no field. */
export function focusOnError(form: HTMLElement | null): void {
  const first = form?.querySelector<HTMLElement>('[aria-invalid="true"], [data-problems], [id$="-error"]');
  // A group of checkboxes is not marked itself, only described by its error.
  const grouped = first?.id && form?.querySelector<HTMLElement>(`[aria-describedby~="${CSS.escape(first.id)}"] input`);
  const field = grouped || first;
  field?.focus();
  field?.scrollIntoView({ block: "center" });
}

interface SectionProps {
  title: string;
  hint?: ReactNode;
  /** The name by which {@link goTo} finds it. */
  name?: string;
  children: ReactNode;
}

export function FormSection({ title, hint, name, children }: SectionProps) {
  const id = useId();
  return (
    <section className={styles.section} aria-labelledby={id} data-section={name} tabIndex={name ? -1 : undefined}>
      <h2 id={id}>{title}</h2>
      {hint && <p className={styles.hint}>{hint}</p>}
      {children}
    </section>
  );
}

/** Brings a section into view and moves the focus there. */
export function goTo(name: string): void {
  const section = document.querySelector<HTMLElement>(`[data-section="${name}"]`);
  section?.focus({ preventScroll: true });
  section?.scrollIntoView({ block: "start", behavior: "auto" });
}
