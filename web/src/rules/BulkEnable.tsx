import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { Rule } from "../api/client";
import { reasonOf } from "../api/errors";
import { ruleKeys, setRuleEnabled } from "../api/rules";
import { Button } from "../ui/Button";
import { ConfirmDialog } from "../ui/ConfirmDialog";
import { useToast } from "../ui/toast";
import { counted, number } from "../ui/words";

/** A message lists so many errors. */
const mostErrors = 5;

interface Props {
  /** The selected rules. */
  rules: readonly Rule[];
  /** Those that the page shows. */
  onPage: readonly Rule[];
  onDone: () => void;
}

/** Enables or disables the selected rules, one after the other: a failure does not stop the others. */
export function BulkEnable({ rules, onPage, onDone }: Props) {
  const cache = useQueryClient();
  const toast = useToast();
  const [asking, setAsking] = useState(false);
  const change = useMutation({
    mutationFn: async (enabled: boolean) => {
      let changed = 0;
      const failed: string[] = [];
      for (const rule of rules) {
        if (rule.enabled === enabled) continue;
        try {
          await setRuleEnabled(rule.id, enabled);
          changed += 1;
        } catch (error) {
          failed.push(`“${rule.name}”: ${reasonOf(error)}`);
        }
      }
      return { changed, failed };
    },
    onSuccess: ({ changed, failed }, enabled) => {
      const word = enabled ? "enabled" : "disabled";
      if (failed.length === 0) onDone();
      const more = failed.length > mostErrors ? ` And ${number(failed.length - mostErrors)} more.` : "";
      const rest = failed.length > 0 ? ` Not ${word}: ${failed.slice(0, mostErrors).join(" ")}${more}` : "";
      toast(`${counted(changed, "rule")} ${word}.${rest}`, failed.length > 0 ? "failed" : "done");
    },
    onSettled: () => cache.invalidateQueries({ queryKey: ruleKeys.all }),
  });
  const on = rules.filter(({ enabled }) => enabled);
  const off = rules.length - on.length;
  const seen = new Set(onPage.map(({ id }) => id));
  const unseen = on.filter(({ id }) => !seen.has(id)).length;
  return (
    <>
      {off > 0 && (
        <Button busy={change.isPending} onClick={() => change.mutate(true)}>
          Enable {counted(off, "rule")}
        </Button>
      )}
      {on.length > 0 && (
        <Button busy={change.isPending} onClick={() => setAsking(true)}>
          Disable {counted(on.length, "rule")}
        </Button>
      )}
      {asking && (
        <ConfirmDialog
          title={`Disable ${counted(on.length, "rule")}?`}
          action={`Disable ${counted(on.length, "rule")}`}
          busy={false}
          error={null}
          onConfirm={() => {
            setAsking(false);
            change.mutate(false);
          }}
          onClose={() => setAsking(false)}
        >
          {unseen > 0 && `Not shown on this page: ${number(unseen)} of them. `}A disabled rule raises no alerts, not
          even later for exchanges that ended while it was disabled. Open alerts stay open.
        </ConfirmDialog>
      )}
    </>
  );
}
