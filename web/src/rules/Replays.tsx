import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import type { Rule, RuleReplay, RuleReplayMessages } from "../api/client";
import { reasonOf } from "../api/errors";
import { useMay } from "../api/operations";
import { cancelReplay, previewReplay, ruleKeys, ruleReplays, startReplay } from "../api/rules";
import { Button } from "../ui/Button";
import { Choice } from "../ui/Choice";
import form from "../ui/form.module.css";
import { Ago, ClockTime, When } from "../ui/Instant";
import { InstantInput } from "../ui/InstantInput";
import { useLastError } from "../ui/lastError";
import { Section } from "../ui/Overview";
import overview from "../ui/overview.module.css";
import { Failed, SkeletonRows } from "../ui/states";
import { useToast } from "../ui/toast";
import { Changed } from "./DifferencePane";
import styles from "./Replays.module.css";
import { evaluated, messageChoices, progressWords, rangeOf, replayWords } from "./replay";

/** Makes a rule evaluate a range of the past again, and shows the progress. */
export function Replays({ rule }: { rule: Rule }) {
  const replays = useQuery(ruleReplays(rule.id));
  const { data } = replays;
  const failure = useLastError(replays, rule.id);
  const may = useMay();
  const running = data?.items.some(({ state }) => state === "RUNNING") ?? false;
  const offered = may("startReplay") && rule.enabled && data !== undefined && !running;
  return (
    <Section title="Replay" inset>
      {!data &&
        (failure ? (
          <Failed error={failure} onRetry={replays.refetch} />
        ) : (
          <SkeletonRows count={2} height={48} label="Loading the replays" />
        ))}
      {data?.items.length === 0 && !offered && (
        <p className={overview.quiet}>No replays yet.{!rule.enabled && " Enable the rule to start one."}</p>
      )}
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
      if (!range) throw new Error("a preview needs a range");
      return { asked, answer: await previewReplay(rule.id, range) };
    },
  });
  const start = useMutation({
    mutationFn: () => startReplay(rule.id, range ?? { from, to }, messages),
    onSuccess: () => toast("The replay was started.", "done"),
    onSettled: () => cache.invalidateQueries({ queryKey: [...ruleKeys.all, rule.id] }),
  });
  // The answer about another range says nothing about this one.
  const answer = preview.data?.asked === asked ? preview.data.answer : undefined;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    start.reset();
    preview.mutate();
  };
  const failed = start.error ?? preview.error;
  return (
    <form className={styles.ask} onSubmit={submit}>
      <p className={form.hint}>
        Raises an alert for each exchange in a time range that matches the current rule and has no alert yet.
        {floor && (
          <>
            {" "}
            The range cannot start before <When at={floor} stop />, because retention may have deleted older alerts.
          </>
        )}
      </p>
      <div className={form.two}>
        <InstantInput label="Started at or after" value={from} onChange={setFrom} />
        <InstantInput
          label="Started before"
          description="Not in the future."
          value={to}
          error={from && to && !range && "Must be after the start"}
          onChange={setTo}
        />
      </div>
      <div className={styles.messages}>
        <span>Messages</span>
        <Choice label="Messages" options={messageChoices} value={messages} onChange={setMessages} />
      </div>
      <p role="status">
        {answer && replayWords(answer, messages, rule.useRoutingPolicy ? undefined : rule.webhookIds.length)}
      </p>
      {answer && (
        <Changed
          title="Alerts to raise"
          of={{ alerts: answer.preview.alerts - answer.existing, newest: answer.preview.newest }}
        />
      )}
      {failed && (
        <p className={styles.failed} role="alert">
          {reasonOf(failed)}
        </p>
      )}
      <div className={form.actions}>
        <Button type="submit" disabled={!range} busy={preview.isPending}>
          Preview replay
        </Button>
        <Button look="primary" disabled={!answer} busy={start.isPending} onClick={() => start.mutate()}>
          Start replay
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
        <b>{progressWords(replay)}</b>
        <div className={overview.quiet}>
          <ClockTime at={replay.from} stop /> to <ClockTime at={replay.to} stop />
          {replay.createdBy && `, started by ${replay.createdBy}`} <Ago at={replay.createdAt} />
          {replay.endedBy && `, cancelled by ${replay.endedBy}`}
        </div>
        {replay.problem && <div className={styles.failed}>{replay.problem}</div>}
        {running && (
          <progress className={styles.progress} aria-label="Evaluated so far" value={evaluated(replay)} max={1} />
        )}
      </div>
      {running && mayCancel && (
        <Button busy={cancel.isPending} onClick={() => cancel.mutate()}>
          Cancel replay
        </Button>
      )}
    </li>
  );
}
