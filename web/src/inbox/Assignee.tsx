import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { actorOf, me } from "../api/access";
import { alertKeys, assignAlert, assignees } from "../api/alerts";
import type { Alert } from "../api/client";
import { reasonOf } from "../api/errors";
import { useMay } from "../api/operations";
import { Button, Key } from "../ui/Button";
import { useCommands } from "../ui/commands";
import { When } from "../ui/Instant";
import { IconPerson } from "../ui/icons";
import { Field } from "../ui/MasterDetail";
import { Select } from "../ui/Select";
import { useToast } from "../ui/toast";
import styles from "./AlertRow.module.css";
import { patchAlert } from "./patch";

/** Whether an alert can be assigned: it fires and is not over. */
const isOpen = ({ state }: Alert) => state === "FIRING" || state === "ACKNOWLEDGED";

/** Assigns an alert; the server refuses where somebody else has done so meanwhile, and the page then shows whom. */
function useAssign(alert: Alert) {
  const cache = useQueryClient();
  const toast = useToast();
  return useMutation({
    mutationKey: alertKeys.all,
    mutationFn: (assignee: string) => assignAlert(alert.id, { assignee, was: alert.assignee ?? "" }),
    onSuccess: ({ assignee, assignedAt, assignedBy }) =>
      patchAlert(cache, alert.id, ({ assignee: _, assignedAt: __, assignedBy: ___, ...rest }) => ({
        ...rest,
        ...(assignee !== undefined && assignedAt !== undefined && assignedBy !== undefined
          ? { assignee, assignedAt, assignedBy }
          : {}),
      })),
    onError: (error) => toast(`“${alert.title}” was not assigned. ${reasonOf(error)}`, "failed"),
    onSettled: () => cache.invalidateQueries({ queryKey: alertKeys.all }),
  });
}

/** Takes an alert that nobody handles, or gives one's own back. */
export function AssignButton({ alert }: { alert: Alert }) {
  const { data: who } = useQuery(me());
  const assign = useAssign(alert);
  const own = actorOf(who);
  const free = alert.assignee === undefined || alert.assignee === own;
  const possible = own !== undefined && who?.kind !== "token" && isOpen(alert) && free;
  const taken = alert.assignee === own;
  const run = () => assign.mutate(taken ? "" : (own ?? ""));
  useCommands([
    {
      id: "assign",
      section: "This alert",
      label: taken ? "Unassign this alert" : "Assign this alert to me",
      icon: IconPerson,
      keys: ["m"],
      enabled: possible && !assign.isPending,
      run,
    },
  ]);
  if (!possible) return null;
  return (
    <Button disabled={assign.isPending} onClick={run}>
      <IconPerson size={16} aria-hidden="true" />
      {taken ? "Unassign" : "Assign to me"} <Key>M</Key>
    </Button>
  );
}

/** Who handles an alert. Whoever may act passes it to somebody else. */
export function AssignedField({ alert }: { alert: Alert }) {
  const may = useMay()("assignAlert") && isOpen(alert);
  const { data: who } = useQuery(me());
  const { data: people = [] } = useQuery({ ...assignees(), enabled: may });
  const assign = useAssign(alert);
  const { assignee = "", assignedAt, assignedBy } = alert;
  const own = who?.kind === "token" ? undefined : actorOf(who);
  const names = [...new Set([...(own ? [own] : []), ...people, ...(assignee ? [assignee] : [])])];
  return (
    <Field name="Assigned to">
      {may ? (
        <Select
          bare
          label="Assigned to"
          options={[{ value: "", label: "Nobody" }, ...names.map((name) => ({ value: name, label: name }))]}
          value={assignee}
          disabled={assign.isPending}
          onChange={(name) => assign.mutate(name)}
        />
      ) : (
        assignee || "Nobody"
      )}
      {assignedAt && (
        <div className={styles.since}>
          <When at={assignedAt} stop />
          {assignedBy !== assignee && ` by ${assignedBy}`}
        </div>
      )}
    </Field>
  );
}

/** In a row: who handles the alert. */
export function AssignedTo({ alert }: { alert: Alert }) {
  if (alert.assignee === undefined) return null;
  return (
    <span className={styles.assigned} title={`Assigned to ${alert.assignee}`}>
      <span aria-hidden="true">→ {shortName(alert.assignee)}</span>
      <span className="visually-hidden">Assigned to {alert.assignee}</span>
    </span>
  );
}

/** An e-mail address without its domain, as far as a row has room for a person. */
const shortName = (name: string) => name.replace(/@.*$/, "");
