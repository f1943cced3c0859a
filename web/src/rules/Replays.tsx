import { TextInput } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import type { Rule, RuleReplay, RuleReplayMessages } from "../api/client";
import { reasonOf } from "../api/errors";
import { useMay } from "../api/operations";
import { cancelReplay, previewReplay, ruleKeys, ruleReplays, startReplay } from "../api/rules";
import { Button } from "../ui/Button";
import { Choice } from "../ui/Choice";
import form from "../ui/form.module.css";
import { Ago, When } from "../ui/Instant";
import { Section } from "../ui/Overview";
import overview from "../ui/overview.module.css";
import { useToast } from "../ui/toast";
import styles from "./Replays.module.css";
import { judged, messageChoices, rangeOf, replayWords, standingWords } from "./replay";

/** Has a rule judge a range of the past again, and shows how far that has come. */
export function Replays({ rule }: { rule: Rule }) {
  const { data } = useQuery(ruleReplays(rule.id));
  const may = useMay();
  const running = data?.items.some(({ state }) => state === "RUNNING") ?? false;
  const offered = may("startReplay") && rule.enabled && data !== undefined && !running;
  if (!offered && !data?.items.length) return null;
  return (
    <Section title="Replay" inset>
      {offered && <Ask rule={rule} floor={data.floor} />}
      {data && data.items.length > 0 && (
        <ul className={`${overview.list} ${styles.list}`}>
          {data.items.map((replay) => (
            <Row key={replay.id} rule={rule} replay={replay} mayCancel={may("cancelReplay")} />
          ))}
        </ul>
      )}
    </Section>
  );
}

function Ask({ rule, floor }: { rule: Rule; floor: string | undefined }) {
  const [from, setFrom] = useState("");
  const [to, setTo] = useState("");
  const [messages, setMessages] = useState<RuleReplayMessages>("NONE");
  const cache = useQueryClient();
  const toast = useToast();
  const range = rangeOf(from, to);
  const asked = JSON.stringify([rule.version, range]);
  const preview = useMutation({
    mutationFn: async () => {
      if (!range) throw new Error("Give a beginning and an end after it.");
      return { asked, told: await previewReplay(rule.id, range) };
    },
  });
  const start = useMutation({
    mutationFn: () => startReplay(rule.id, range ?? { from, to }, messages),
    onSuccess: () => toast("The replay is under way.", "done"),
    onSettled: () => cache.invalidateQueries({ queryKey: [...ruleKeys.all, rule.id] }),
  });
  // What was told of another range says nothing about this one.
  const told = preview.data?.asked === asked ? preview.data.told : undefined;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    preview.mutate();
  };
  const failed = start.error ?? preview.error;
  return (
    <form className={styles.ask} onSubmit={submit}>
      <p className={form.hint}>
        Raises an alert for each exchange of a time range that matches the rule as it stands and has no alert yet.
        {floor && (
          <>
            {" "}
            Not before <When at={floor} stop />, because retention may have deleted older alerts.
          </>
        )}
      </p>
      <div className={form.two}>
        <TextInput
          type="datetime-local"
          step={1}
          label="Began at or after"
          description="By the clock of this browser."
          value={from}
          onChange={(event) => setFrom(event.currentTarget.value)}
        />
        <TextInput
          type="datetime-local"
          step={1}
          label="Began before"
          description="Not in the future."
          value={to}
          onChange={(event) => setTo(event.currentTarget.value)}
        />
      </div>
      <div className={styles.messages}>
        <span>Messages</span>
        <Choice label="Messages" options={messageChoices} value={messages} onChange={setMessages} />
      </div>
      {told && <p role="status">{replayWords(told, messages, rule.webhookIds.length)}</p>}
      {failed && (
        <p className={styles.failed} role="alert">
          {reasonOf(failed)}
        </p>
      )}
      <div className={form.actions}>
        <Button type="submit" disabled={!range || preview.isPending}>
          Preview the replay
        </Button>
        <Button look="primary" disabled={!told || start.isPending} onClick={() => start.mutate()}>
          Start the replay
        </Button>
      </div>
    </form>
  );
}

function Row({ rule, replay, mayCancel }: { rule: Rule; replay: RuleReplay; mayCancel: boolean }) {
  const cache = useQueryClient();
  const toast = useToast();
  const cancel = useMutation({
    mutationFn: () => cancelReplay(replay.id),
    onError: (error) => toast(`The replay was not cancelled. ${reasonOf(error)}`, "failed"),
    onSettled: () => cache.invalidateQueries({ queryKey: [...ruleKeys.all, rule.id] }),
  });
  const running = replay.state === "RUNNING";
  return (
    <li className={styles.row}>
      <div>
        <b>{standingWords(replay)}</b>
        <div className={overview.quiet}>
          <When at={replay.from} stop /> to <When at={replay.to} stop />
          {replay.createdBy && `, begun by ${replay.createdBy}`} <Ago at={replay.createdAt} />
          {replay.endedBy && `, cancelled by ${replay.endedBy}`}
        </div>
        {replay.problem && <div className={styles.failed}>{replay.problem}</div>}
        {running && <progress className={styles.progress} aria-label="Judged so far" value={judged(replay)} max={1} />}
      </div>
      {running && mayCancel && (
        <Button disabled={cancel.isPending} onClick={() => cancel.mutate()}>
          Cancel the replay
        </Button>
      )}
    </li>
  );
}
