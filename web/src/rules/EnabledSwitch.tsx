import { Switch } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import type { Rule } from "../api/client";
import { reasonOf } from "../api/errors";
import { ruleKeys, setRuleEnabled } from "../api/rules";
import { useToast } from "../ui/toast";

interface Props {
  rule: Rule;
  mayWrite: boolean;
  /** Whether it also shows its state in words. */
  words?: boolean;
}

export function EnabledSwitch({ rule, mayWrite, words = false }: Props) {
  const cache = useQueryClient();
  const toast = useToast();
  const change = useMutation({
    mutationFn: (enabled: boolean) => setRuleEnabled(rule.id, enabled),
    onError: (error) => toast(`“${rule.name}” was not changed. ${reasonOf(error)}`, "failed"),
    onSettled: () => cache.invalidateQueries({ queryKey: ruleKeys.all }),
  });
  return (
    <Switch
      size="sm"
      {...(words ? { label: rule.enabled ? "Enabled" : "Disabled" } : {})}
      aria-label={`${rule.name} is enabled`}
      checked={change.isPending ? change.variables : rule.enabled}
      disabled={!mayWrite}
      // It stays enabled during the change: otherwise it would lose the focus.
      onChange={() => !change.isPending && change.mutate(!rule.enabled)}
    />
  );
}
