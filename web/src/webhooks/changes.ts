import { useMutation, useQueryClient } from "@tanstack/react-query";
import type { Webhook } from "../api/client";
import { reasonOf } from "../api/errors";
import { retireSecret, setWebhookEnabled, webhookKeys } from "../api/webhooks";
import { useToast } from "../ui/toast";

/** Enables a disabled webhook, and disables an enabled one. */
export function useSwitch(onChanged?: (webhook: Webhook) => void) {
  const cache = useQueryClient();
  const toast = useToast();
  return useMutation({
    mutationFn: ({ id, enabled }: Webhook) => setWebhookEnabled(id, !enabled),
    onSuccess: (webhook) => {
      onChanged?.(webhook);
      const what = webhook.enabled
        ? "is enabled; waiting messages are sent"
        : "is disabled; its messages wait until it is enabled";
      toast(`“${webhook.name}” ${what}.`, "done");
    },
    onError: (error, { name }) => toast(`“${name}” was not changed. ${reasonOf(error)}`, "failed"),
    onSettled: () => cache.invalidateQueries({ queryKey: webhookKeys.all }),
  });
}

/** Makes only the present secret sign from now on. */
export function useRetireSecret(onChanged: (webhook: Webhook) => void) {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: ({ id }: Webhook) => retireSecret(id),
    onSuccess: onChanged,
    onSettled: () => cache.invalidateQueries({ queryKey: webhookKeys.all }),
  });
}
