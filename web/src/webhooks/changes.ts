import { useMutation, useQueryClient } from "@tanstack/react-query";
import type { Webhook } from "../api/client";
import { reasonOf } from "../api/errors";
import { retireSecret, setWebhookEnabled, webhookKeys } from "../api/webhooks";
import { useToast } from "../ui/toast";
import { useHere } from "../ui/useHere";

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

/** Makes only the present secret sign from now on. The dialog that uses it shows an error, or a message if it was closed. */
export function useRetireSecret(onChanged: (webhook: Webhook) => void) {
  const cache = useQueryClient();
  const toast = useToast();
  const here = useHere();
  return useMutation({
    mutationFn: ({ id }: Webhook) => retireSecret(id),
    onSuccess: onChanged,
    onError: (error, { name }) => {
      if (!here()) toast(`The previous secret of “${name}” was not retired. ${reasonOf(error)}`, "failed");
    },
    onSettled: () => cache.invalidateQueries({ queryKey: webhookKeys.all }),
  });
}
