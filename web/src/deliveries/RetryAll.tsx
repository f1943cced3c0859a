import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { reasonOf } from "../api/errors";
import {
  type NotificationFilter,
  notificationCount,
  refreshDeliveries,
  retryNotifications,
} from "../api/notifications";
import { ConfirmDialog } from "../ui/ConfirmDialog";
import { statusMeaning } from "../ui/marks";
import { useToast } from "../ui/toast";
import { useHere } from "../ui/useHere";
import { messagesWord } from "../ui/words";
import { toRetry } from "./filter";

/** Says how many messages a retry affects, before it sends them. */
export function RetryAll({ filter, onClose }: { filter: NotificationFilter; onClose: () => void }) {
  const cache = useQueryClient();
  const toast = useToast();
  const here = useHere();
  const status = toRetry(filter);
  const counted = useQuery(notificationCount({ ...filter, status }));
  const retry = useMutation({
    mutationFn: () => retryNotifications(filter, status),
    onSuccess: ({ retried, skipped }) => {
      if (here()) onClose();
      const rest = skipped > 0 ? ` ${messagesWord(skipped)} skipped: already due, or the webhook is disabled.` : "";
      toast(`${messagesWord(retried)} will be sent again.${rest}`, "done");
    },
    onError: (error) => {
      if (!here()) toast(`The messages were not sent again. ${reasonOf(error)}`, "failed");
    },
    onSettled: () => refreshDeliveries(cache),
  });
  const count = counted.data?.count;
  const some = count === undefined ? "…" : `${counted.data?.more ? "more than " : ""}${messagesWord(count)}`;
  const words = status.map((one) => statusMeaning[one].word.toLowerCase()).join(" or ");
  return (
    <ConfirmDialog
      title="Send all matching messages again?"
      action={count === 0 ? "Nothing to send again" : `Send ${some} again`}
      busy={retry.isPending || !count}
      error={retry.error ?? counted.error}
      onConfirm={() => retry.mutate()}
      onClose={onClose}
    >
      {count === 0
        ? `No matching messages have the status ${words}.`
        : `All matching messages with the status ${words} are sent again now, each under a new ID. A receiver that has already processed one cannot recognise the duplicate.`}
    </ConfirmDialog>
  );
}
