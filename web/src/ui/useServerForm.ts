import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { reasonOf } from "../api/errors";
import { type Placed, placeErrors } from "../api/fields";
import { useToast } from "./toast";
import { useHere } from "./useHere";
import { useUntilBack } from "./useUntilBack";

interface Options<Asked, Answer> {
  /** The form whose fields show the server's errors. */
  form: { setErrors: (errors: Record<string, string>) => void; clearErrors: () => void };
  /** The names of fields in the server's errors; other errors are shown at the top of the form. */
  fields: readonly string[];
  send: (asked: Asked) => Promise<Answer>;
  onSaved?: (answer: Answer) => unknown;
  /** Handles a refusal that is not about fields, such as a conflict; returns whether it did. */
  onRefused?: (error: Error) => boolean | Promise<boolean>;
  onSettled?: () => unknown;
  /** The form's name for a field of the server. */
  path?: (field: string) => string;
}

/**
 * A form that the server checks. It is sent, and the server's errors are shown at the fields or at the top; in a message, if
 * the form was left in the meantime.
 */
export function useServerForm<Asked, Answer>(options: Options<Asked, Answer>) {
  const { form, fields, send, onSaved, onRefused, onSettled, path = (field) => field } = options;
  const [problems, setProblems] = useState<readonly string[]>([]);
  const [refusals, setRefusals] = useState(0);
  const toast = useToast();
  const here = useHere();
  const refuse = (placed: Placed) => {
    form.setErrors(Object.fromEntries(Object.entries(placed.fields).map(([field, said]) => [path(field), said])));
    setProblems(placed.rest);
    setRefusals((count) => count + 1);
  };
  const sending = useMutation({
    mutationFn: send,
    onSuccess: onSaved ?? (() => undefined),
    onError: async (error) => {
      if (!here()) {
        toast(`Not saved. ${reasonOf(error)}`, "failed");
        return;
      }
      if (await onRefused?.(error)) return;
      refuse(placeErrors(error, fields));
    },
    onSettled: onSettled ?? (() => undefined),
  });
  useUntilBack(sending.error, () => setProblems([]));
  return {
    /** Errors without a field. */
    problems,
    problem: problems.join(" ") || undefined,
    /** Changes with each refusal. */
    refusals,
    busy: sending.isPending,
    /** The answer, when there is one. */
    answer: sending.data,
    refuse,
    clearProblems: () => setProblems([]),
    submit: (asked: Asked) => {
      form.clearErrors();
      setProblems([]);
      sending.mutate(asked);
    },
  };
}
