import { useMutation, useQueryClient } from "@tanstack/react-query";
import type { Rule } from "../api/client";
import { reasonOf } from "../api/errors";
import { duplicateRule, ruleKeys } from "../api/rules";
import { useToast } from "../ui/toast";
import { useHere } from "../ui/useHere";

/** Makes a disabled copy of a stored rule. `onCopied` is called if the reader is still there. */
export function useDuplicate(onCopied: (copy: Rule) => unknown) {
  const cache = useQueryClient();
  const toast = useToast();
  const here = useHere();
  return useMutation({
    mutationFn: ({ id }: Rule) => duplicateRule(id),
    onSuccess: async (copy) => {
      toast(`“${copy.name}” was created, disabled.`, "done");
      await cache.invalidateQueries({ queryKey: ruleKeys.all });
      if (here()) await onCopied(copy);
    },
    onError: (error, rule) => toast(`“${rule.name}” was not duplicated. ${reasonOf(error)}`, "failed"),
  });
}
