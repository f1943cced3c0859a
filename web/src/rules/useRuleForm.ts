import { useForm } from "@mantine/form";
import { useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import type { FieldError, Rule } from "../api/client";
import { ApiError } from "../api/errors";
import { placeErrors, placeFields } from "../api/fields";
import { createRule, readRule, ruleKeys, ruleOne, updateRule } from "../api/rules";
import type { DraftOf } from "../drafts/draft";
import { useDraft, useKeeping } from "../drafts/useDraft";
import { useServerForm } from "../ui/useServerForm";
import { check } from "./check";
import { definition, fieldsOf, same } from "./definition";
import { type KeptRule, ruleKind } from "./drafts";
import { type Editor, pathOf } from "./editor";
import { initialValues, type Values, valuesOf } from "./values";

interface Options {
  /** Whose drafts these are. */
  person: string;
  /** The draft to continue with, if one was chosen. */
  taking: KeptRule | undefined;
  /**
   * The first content of the form if no draft was chosen. If it is undefined, the form begins with
   * a waiting draft, or with the stored rule.
   */
  proposed: Values | undefined;
  onCreated: (rule: Rule) => void;
  onUpdated: (rule: Rule) => void;
}

/**
 * The form of a rule, stored or new. What a person types is stored as a draft until it is saved or
 * discarded. A rule that somebody else has saved meanwhile is not overwritten: it is read, and the
 * person chooses.
 */
export function useRuleForm(rule: Rule | undefined, { person, taking, proposed, onCreated, onUpdated }: Options) {
  const cache = useQueryClient();
  const id = rule?.id;
  const of = useMemo<DraftOf<Values>>(() => ({ person, kind: ruleKind, id }), [person, id]);
  const drafts = useDraft<Values, Rule>(of, taking, proposed !== undefined);
  const { taken: draft, others, giveUp } = drafts;
  /** The rule as it was when the person began. */
  const [base, setBase] = useState(draft?.base ?? rule);
  const before = base ? valuesOf(base) : initialValues;
  const form = useForm<Values>({ initialValues: draft?.values ?? proposed ?? before });
  const dirty = !same(form.values, before);
  const [theirs, setTheirs] = useState<Rule>();
  const known = fieldsOf(form.values);
  const { restored, kept, forget } = useKeeping(drafts, { values: form.values, base, dirty });

  /** Begins again with a stored rule. */
  const restart = (stored: Rule | undefined) => {
    forget();
    setBase(stored);
    setTheirs(undefined);
    const next = stored ? valuesOf(stored) : initialValues;
    form.setInitialValues(next);
    form.reset();
  };
  const save = useServerForm({
    form,
    fields: known,
    path: pathOf,
    send: (asked: ReturnType<typeof definition>) =>
      base ? updateRule(base.id, base.version, asked) : createRule(asked),
    onSaved: (saved) => {
      forget();
      if (base) {
        cache.setQueryData(ruleOne(saved.id).queryKey, saved);
        restart(saved);
        onUpdated(saved);
      } else onCreated(saved);
      return cache.invalidateQueries({ queryKey: ruleKeys.all });
    },
    onRefused: async (error) => {
      if (!base || !(error instanceof ApiError && error.status === 412)) return false;
      try {
        setTheirs(await readRule(base.id));
      } catch (cause) {
        save.refuse(placeErrors(cause, known));
      }
      return true;
    },
  });

  return {
    form,
    base,
    before,
    dirty,
    /** When the restored text was written; undefined if there is none. */
    restored,
    /** Whether closing the page would lose something. */
    losable: dirty && !kept,
    /** Whether the typed text is stored in this browser. */
    kept,
    /** Other stored drafts of the same rule. */
    others,
    giveUp,
    theirs,
    problems: save.problems,
    refusals: save.refusals,
    saving: save.busy,
    restart,
    /** Saves, unless it is already known that the API or the browser's own check refuses it. */
    submit: (complaints: readonly FieldError[]) => {
      const asked = definition(form.values);
      const wrong = [...check(asked), ...complaints];
      if (wrong.length > 0) save.refuse(placeFields(once(wrong), known));
      else save.submit(asked);
    },
    /** Continues with the choice between two versions, based on theirs. */
    take: (chosen: Values) => {
      if (!theirs) return;
      setBase(theirs);
      setTheirs(undefined);
      form.setValues(chosen);
    },
    closeConflict: () => setTheirs(undefined),
  };
}

/**
 * What the sections share, and the errors of each field that the person has reached. The object
 * only changes when its content does, because rendering a form takes long.
 */
export function useEditor(
  { form, refusals }: Pick<ReturnType<typeof useRuleForm>, "form" | "refusals">,
  complaints: readonly FieldError[],
): Editor {
  const said = JSON.stringify(complaints);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the form is another object each time, and says the same.
  return useMemo(() => {
    const known = fieldsOf(form.values);
    const complained = JSON.parse(said) as FieldError[];
    const live = placeFields(once([...check(definition(form.values)), ...complained]), known).fields;
    const errorOf = (field: string) => {
      const refused = form.errors[pathOf(field)];
      if (refused !== undefined && refused !== null) return String(refused);
      // A field that the person has only entered shows no error yet.
      const written = form.isTouched(pathOf(field)) && form.isDirty(pathOf(field));
      return written || refusals > 0 ? live[field] : undefined;
    };
    return { form, errorOf };
  }, [form.values, form.errors, refusals, said]);
}

/** One error for each field: the browser's, if the API reports the same one. */
function once(errors: readonly FieldError[]): FieldError[] {
  return errors.filter(({ field }, index) => errors.findIndex((other) => other.field === field) === index);
}
