import { Checkbox } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { actorOf, me } from "../api/access";
import { alertKeys, assignAlert, assignees, type Handover } from "../api/alerts";
import type { Alert } from "../api/client";
import { reasonOf } from "../api/errors";
import { useMay } from "../api/operations";
import { Button, Key } from "../ui/Button";
import { useCommands } from "../ui/commands";
import { FormDialog } from "../ui/FormDialog";
import { When } from "../ui/Instant";
import { IconPerson } from "../ui/icons";
import { Field } from "../ui/MasterDetail";
import { Select } from "../ui/Select";
import { useToast } from "../ui/toast";
import styles from "./AlertRow.module.css";
import { shortName } from "./Owner";
import { patchAlert } from "./patch";
import { useUndo } from "./undo";

/** Whether an alert can be assigned: it fires and is not over. */
const isOpen = ({ state }: Alert) => state === "FIRING" || state === "ACKNOWLEDGED";

/** Whether the reader may assign an alert, to anybody. */
export function useAssignable(alert: Alert): boolean {
  return useMay()("assignAlert") && isOpen(alert);
}

/** Assigns an alert. If somebody else has done so meanwhile, the server refuses, and the page shows the assignee. */
function useAssign(alert: Alert) {
  const cache = useQueryClient();
  const toast = useToast();
  const undo = useUndo();
  return useMutation({
    mutationKey: alertKeys.all,
    onMutate: () => ({ place: undo.take() }),
    mutationFn: (assignee: string) => assignAlert(alert.id, { assignee, was: alert.assignee ?? "" }),
    onSuccess: ({ assignee, assignedAt, assignedBy }, _, { place }) => {
      undo.supersede(place);
      patchAlert(cache, alert.id, ({ assignee: __, assignedAt: ___, assignedBy: ____, ...rest }) => ({
        ...rest,
        ...(assignee !== undefined && assignedAt !== undefined && assignedBy !== undefined
          ? { assignee, assignedAt, assignedBy }
          : {}),
      }));
    },
    onError: (error) => toast(`“${alert.title}” was not assigned. ${reasonOf(error)}`, "failed"),
    onSettled: () => cache.invalidateQueries({ queryKey: alertKeys.all }),
  });
}

/** The name under which the reader can be assigned; undefined for a token, which handles nothing. */
export function useSelf(): string | undefined {
  const { data: who } = useQuery(me());
  return who?.kind === "token" ? undefined : actorOf(who);
}

/**
 * Takes an alert that nobody handles, or gives up the reader's own. While other alerts are
 * selected, the key applies to them.
 */
export function AssignButton({ alert, selecting }: { alert: Alert; selecting: boolean }) {
  const assign = useAssign(alert);
  const own = useSelf();
  const free = alert.assignee === undefined || alert.assignee === own;
  const possible = own !== undefined && isOpen(alert) && free;
  const taken = alert.assignee === own;
  const run = () => assign.mutate(taken ? "" : (own ?? ""));
  useCommands([
    {
      id: "assign",
      section: "This alert",
      label: taken ? "Unassign this alert" : "Assign this alert to me",
      icon: IconPerson,
      keys: ["m"],
      enabled: possible && !selecting && !assign.isPending,
      run,
    },
  ]);
  if (!possible) return null;
  return (
    <Button busy={assign.isPending} onClick={run}>
      <IconPerson size={16} aria-hidden="true" />
      {taken ? "Unassign" : "Assign to me"} <Key>M</Key>
    </Button>
  );
}

/** Who handles an alert. A person who may act can pass it to somebody else. */
export function AssignedField({ alert }: { alert: Alert }) {
  const may = useAssignable(alert);
  const assign = useAssign(alert);
  const { assignee = "", assignedAt, assignedBy } = alert;
  const options = usePeople(may, assignee);
  return (
    <Field name="Assigned to">
      {may ? (
        <Select
          bare
          label="Assigned to"
          options={options}
          value={assign.isPending ? assign.variables : assignee}
          onChange={(name) => !assign.isPending && assign.mutate(name)}
        />
      ) : (
        assignee || "Unassigned"
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

/** The possible assignees: nobody, the reader, and everybody who may act. */
function usePeople(may: boolean, present = "") {
  const own = useSelf();
  const { data: people = [] } = useQuery({ ...assignees(), enabled: may });
  const names = [...new Set([...(own ? [own] : []), ...people, ...(present ? [present] : [])])];
  return [{ value: "", label: "Unassigned" }, ...names.map((name) => ({ value: name, label: name }))];
}

interface AssignDialogProps {
  /** What is being assigned: "3 alerts". */
  what: string;
  onAssign: (to: Handover) => void;
  onClose: () => void;
}

/** Asks who many alerts are assigned to. */
export function AssignDialog({ what, onAssign, onClose }: AssignDialogProps) {
  const own = useSelf();
  const options = usePeople(true);
  const [chosen, setAssignee] = useState<string>();
  const [reassign, setReassign] = useState(false);
  const assignee = chosen ?? own ?? "";
  return (
    <FormDialog
      title={`Assign ${what}`}
      action="Assign"
      onSubmit={() => {
        onAssign({ assignee, reassign });
        onClose();
      }}
      onClose={onClose}
    >
      <Select label="Assign to" options={options} value={assignee} onChange={setAssignee} />
      <Checkbox
        label="Include alerts that others are handling"
        description="Otherwise, they keep their assignees."
        checked={reassign}
        onChange={(event) => setReassign(event.currentTarget.checked)}
      />
    </FormDialog>
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
