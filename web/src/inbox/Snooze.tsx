import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { alertKeys, snoozeAlert, unsnoozeAlert } from "../api/alerts";
import type { Alert } from "../api/client";
import { reasonOf } from "../api/errors";
import { Button, Key } from "../ui/Button";
import { useCommands } from "../ui/commands";
import { FormDialog } from "../ui/FormDialog";
import { InstantInput } from "../ui/InstantInput";
import { IconWaiting } from "../ui/icons";
import { useAtNow } from "../ui/now";
import { Select } from "../ui/Select";
import { useSetting } from "../ui/setting";
import { dayHours, exactTime, minuteTime, timeZone } from "../ui/time";
import { useToast } from "../ui/toast";
import { useHere } from "../ui/useHere";
import styles from "./AlertRow.module.css";
import { patchAlert } from "./patch";
import { naps } from "./snoozes";
import { useUndo } from "./undo";

/** Snoozes an alert; an empty instant ends the snooze. */
function useSnooze(alert: Alert, onDone: () => void) {
  const cache = useQueryClient();
  const toast = useToast();
  const undo = useUndo();
  const here = useHere();
  return useMutation({
    mutationKey: alertKeys.all,
    onMutate: () => ({ place: undo.take() }),
    mutationFn: (until: string) => (until === "" ? unsnoozeAlert(alert.id) : snoozeAlert(alert.id, until)),
    onSuccess: ({ snoozedUntil, snoozedBy }, _, { place }) => {
      undo.supersede(place);
      patchAlert(cache, alert.id, ({ snoozedUntil: __, snoozedBy: ___, ...rest }) => ({
        ...rest,
        ...(snoozedUntil !== undefined && snoozedBy !== undefined ? { snoozedUntil, snoozedBy } : {}),
      }));
      if (here()) onDone();
    },
    onError: (error, until) => {
      if (until === "") toast(`The snooze of “${alert.title}” was not ended. ${reasonOf(error)}`, "failed");
      // The dialog says so itself.
      else if (!here()) toast(`“${alert.title}” was not snoozed. ${reasonOf(error)}`, "failed");
    },
    onSettled: () => cache.invalidateQueries({ queryKey: alertKeys.all }),
  });
}

/** Asks until when an alert is snoozed, or ends its snooze. */
export function SnoozeButton({ alert }: { alert: Alert }) {
  const [asking, setAsking] = useState(false);
  const end = useSnooze(alert, () => undefined);
  const possible = alert.state === "FIRING" || alert.state === "ACKNOWLEDGED";
  const snoozed = alert.snoozedUntil !== undefined;
  const run = () => (snoozed ? end.mutate("") : setAsking(true));
  useCommands([
    {
      id: "snooze",
      section: "This alert",
      label: snoozed ? "End this alert’s snooze" : "Snooze this alert",
      icon: IconWaiting,
      words: "remind later",
      keys: ["s"],
      enabled: possible && !asking && !end.isPending,
      run,
    },
  ]);
  if (!possible) return null;
  return (
    <>
      <Button busy={end.isPending} onClick={run}>
        <IconWaiting size={16} aria-hidden="true" />
        {snoozed ? "End snooze" : "Snooze"} <Key>S</Key>
      </Button>
      {asking && <SnoozeDialog alert={alert} onClose={() => setAsking(false)} />}
    </>
  );
}

const chosen = "chosen";

function SnoozeDialog({ alert, onClose }: { alert: Alert; onClose: () => void }) {
  const [offered] = useState(() => naps(new Date()));
  const [choice, setChoice] = useState(offered[0]?.value ?? chosen);
  const [until, setUntil] = useState("");
  const snooze = useSnooze(alert, onClose);
  const [missing, setMissing] = useState(false);
  const submit = () => {
    const nap = offered.find(({ value }) => value === choice);
    const at = choice === chosen ? until : (nap?.until(new Date()).toISOString() ?? "");
    setMissing(at === "");
    if (at !== "") snooze.mutate(at);
  };
  const problem = missing ? "Choose a time." : snooze.error ? reasonOf(snooze.error) : undefined;
  return (
    <FormDialog
      title="Snooze this alert"
      action="Snooze"
      busy={snooze.isPending}
      problem={problem}
      onSubmit={submit}
      onClose={onClose}
    >
      <Select
        label="How long"
        description="If the alert is still open then, everyone who was notified of it is reminded once."
        options={[
          ...offered.map(({ value, label }) => ({ value, label })),
          { value: chosen, label: "Until a specific time" },
        ]}
        value={choice}
        onChange={setChoice}
      />
      {choice === chosen && <InstantInput label="Until" value={until} onChange={setUntil} />}
    </FormDialog>
  );
}

/** Until when an alert is snoozed; empty if it is not. */
export function SnoozedMark({ alert, by = false }: { alert: Alert; by?: boolean }) {
  useSetting(timeZone);
  useSetting(dayHours);
  const { snoozedUntil = "", snoozedBy } = alert;
  const clock = useAtNow((now) => (snoozedUntil === "" ? "" : minuteTime(snoozedUntil, now)));
  if (snoozedUntil === "") return null;
  return (
    <span className={styles.snoozed} title={`Snoozed until ${exactTime(snoozedUntil)} by ${snoozedBy}`}>
      <IconWaiting size={13} stroke={2} aria-hidden="true" />
      <span>
        <span className={by ? undefined : "visually-hidden"}>Snoozed until </span>
        {clock}
        {by && ` by ${snoozedBy}`}
      </span>
    </span>
  );
}
