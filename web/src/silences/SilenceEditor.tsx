import { Checkbox, Input, Textarea, TextInput } from "@mantine/core";
import { type UseFormReturnType, useForm } from "@mantine/form";
import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { type ReactNode, useEffect, useMemo } from "react";
import { type Me, me } from "../api/access";
import { oneAlert } from "../api/alerts";
import type { Silence, SilencePreviewRequest } from "../api/client";
import { reasonOf } from "../api/errors";
import { mayCall } from "../api/operations";
import { createSilence, oneSilence, silenceKeys, silencePreview, updateSilence } from "../api/silences";
import { Page } from "../frame/Page";
import { Button, buttonClass } from "../ui/Button";
import { Choice } from "../ui/Choice";
import columns from "../ui/columns.module.css";
import { Form, FormSection } from "../ui/Form";
import formStyles from "../ui/form.module.css";
import { ExactTime } from "../ui/Instant";
import { SeverityMark } from "../ui/marks";
import { useStanding } from "../ui/standing";
import { Failed, Forbidden, SkeletonForm } from "../ui/states";
import { useToast } from "../ui/toast";
import { useServerForm } from "../ui/useServerForm";
import { counted } from "../ui/words";
import {
  blank,
  definitionOf,
  fields,
  inHours,
  matchOf,
  pathOf,
  recurrenceOf,
  shortDay,
  type Values,
  valuesFor,
  valuesOf,
  weekdays,
  wrongLines,
} from "./form";
import { MatchFields } from "./MatchFields";
import { State } from "./SilencesPage";
import { parseNewSilence } from "./search";
import styles from "./silences.module.css";

export function NewSilencePage() {
  const { alert } = parseNewSilence(useSearch({ strict: false }));
  const who = useQuery(me());
  const source = useQuery({ ...oneAlert(alert ?? ""), enabled: alert !== undefined });
  const failure = useStanding(who);
  useEffect(() => {
    document.title = "New silence · Tocsin";
  }, []);
  return (
    <Page title="New silence">
      {who.data === undefined ? (
        failure ? (
          <Failed error={failure} onRetry={who.refetch} />
        ) : (
          <SkeletonForm label="Loading" />
        )
      ) : !mayCall(who.data, "createSilence") ? (
        <Forbidden role={who.data.role} least="operators" />
      ) : alert !== undefined && source.isPending ? (
        <SkeletonForm label="Loading the alert" />
      ) : alert !== undefined && source.data === undefined ? (
        <Failed error={source.error} onRetry={source.refetch} />
      ) : (
        <Editor initial={source.data ? valuesFor(source.data) : { ...blank(), endsAt: inHours(1) }} />
      )}
    </Page>
  );
}

export function EditSilencePage() {
  const { silenceId = "" } = useParams({ strict: false });
  const who = useQuery(me());
  const silence = useQuery(oneSilence(silenceId));
  const failure = useStanding(who.data ? silence : who, silenceId);
  useEffect(() => {
    document.title = "Silence · Tocsin";
  }, []);
  return (
    <Page title={silence.data?.name ?? "Silence"}>
      {who.data && silence.data ? (
        <Editor
          key={`${silenceId} ${silence.data.version}`}
          initial={valuesOf(silence.data)}
          silence={silence.data}
          who={who.data}
        />
      ) : failure ? (
        <Failed error={failure} onRetry={() => Promise.all([who.refetch(), silence.refetch()])}>
          <p>
            <Link to="/silences">Go to the silences</Link>
          </p>
        </Failed>
      ) : (
        <SkeletonForm label="Loading the silence" />
      )}
    </Page>
  );
}

interface EditorProps {
  initial: Values;
  /** The stored silence; a new one has none. */
  silence?: Silence;
  who?: Me;
}

function Editor({ initial, silence, who }: EditorProps) {
  const navigate = useNavigate();
  const cache = useQueryClient();
  const toast = useToast();
  const form = useForm<Values>({ initialValues: initial });
  const save = useServerForm({
    form,
    fields,
    path: pathOf,
    send: (values: Values) =>
      silence ? updateSilence(silence, definitionOf(values)) : createSilence(definitionOf(values)),
    onSaved: async (saved) => {
      toast(silence ? `“${saved.name}” was saved.` : `“${saved.name}” was created.`, "done");
      await cache.invalidateQueries({ queryKey: silenceKeys.all });
      await navigate({ to: "/silences" });
    },
  });
  const submit = () => {
    const wrong = wrongLines(form.values);
    if (Object.keys(wrong).length > 0) form.setErrors(wrong);
    else save.submit(form.values);
  };
  const over = silence?.state === "PAST";
  const may = silence === undefined || (mayCall(who, "updateSilence") && !over);
  return (
    <div className={columns.page}>
      <div className={columns.columns}>
        <div className={styles.scroll}>
          <Form problems={save.problems} refusals={save.refusals} onSubmit={submit}>
            {silence && <Standing silence={silence} over={over} />}
            <fieldset disabled={!may} className={formStyles.section}>
              <WhatSection form={form} />
              <FormSection
                title="Which alerts"
                hint="All conditions must hold; a blank one matches everything. Alerts about Tocsin itself are never silenced."
              >
                <MatchFields form={form} />
              </FormSection>
              <WhenSection form={form} begun={silence?.state === "ACTIVE"} />
            </fieldset>
            <div className={formStyles.actions}>
              {may && (
                <Button type="submit" look="primary" disabled={save.busy}>
                  {silence ? "Save the silence" : "Create the silence"}
                </Button>
              )}
              <Link to="/silences" className={buttonClass()}>
                {may ? "Cancel" : "Back to the silences"}
              </Link>
            </div>
          </Form>
        </div>
        <aside className={`${columns.aside} ${styles.aside}`} aria-label="Preview">
          <Preview values={form.values} />
        </aside>
      </div>
    </div>
  );
}

function Standing({ silence, over }: { silence: Silence; over: boolean }) {
  return (
    <div>
      <State silence={silence} />
      <p className={styles.sub}>
        {counted(silence.suppressed, "message")} suppressed. Created by {silence.createdBy} at{" "}
        <ExactTime at={silence.createdAt} />
        {silence.version > 1 && (
          <>
            , last changed by {silence.updatedBy} at <ExactTime at={silence.updatedAt} />
          </>
        )}
        .{over && " It is over and cannot be changed any more."}
      </p>
    </div>
  );
}

type OfForm = { form: UseFormReturnType<Values> };

function WhatSection({ form }: OfForm) {
  return (
    <FormSection title="Silence">
      <TextInput label="Name" placeholder="ERP maintenance" {...form.getInputProps("name")} />
      <Textarea
        label="Reason"
        description="Shown on every alert whose messages it suppresses."
        rows={2}
        {...form.getInputProps("reason")}
      />
    </FormSection>
  );
}

const lengths = [
  [0.5, "30 min"],
  [1, "1 h"],
  [2, "2 h"],
  [8, "8 h"],
  [24, "1 day"],
  [168, "1 week"],
] as const;

function WhenSection({ form, begun }: OfForm & { begun: boolean }) {
  const { recurs } = form.values;
  return (
    <FormSection title="When">
      <Input.Wrapper label="Repeats" labelElement="div">
        <Choice
          label="Repeats"
          options={[
            { value: "once", label: "Once" },
            { value: "recurs", label: "Every week" },
          ]}
          value={recurs ? "recurs" : "once"}
          onChange={(chosen) => {
            form.setFieldValue("recurs", chosen === "recurs");
            if (chosen === "recurs") form.setFieldValue("endsAt", "");
          }}
        />
      </Input.Wrapper>
      {recurs && <Windows form={form} />}
      {!recurs && (
        <fieldset className={styles.quick} aria-label="Length">
          <span className={styles.sub}>From now, for</span>
          {lengths.map(([hours, label]) => (
            <Button
              key={label}
              onClick={() => {
                if (!begun) form.setFieldValue("startsAt", "");
                form.setFieldValue("endsAt", inHours(hours));
              }}
            >
              {label}
            </Button>
          ))}
        </fieldset>
      )}
      <div className={formStyles.two}>
        <TextInput
          type="datetime-local"
          label="Starts"
          description={begun ? "It has begun." : "Blank is now."}
          disabled={begun}
          {...form.getInputProps("startsAt")}
        />
        <TextInput
          type="datetime-local"
          label="Ends"
          description={recurs ? "Blank is never." : "By the clock of this browser."}
          {...form.getInputProps("endsAt")}
        />
      </div>
    </FormSection>
  );
}

function Windows({ form }: OfForm) {
  const zones = useMemo(() => Intl.supportedValuesOf("timeZone"), []);
  return (
    <>
      <Checkbox.Group label="Weekdays" {...form.getInputProps("weekdays")}>
        <div className={styles.days}>
          {weekdays.map((day) => (
            <Checkbox key={day} size="xs" value={day} label={shortDay(day)} />
          ))}
        </div>
      </Checkbox.Group>
      <div className={formStyles.two}>
        <TextInput type="time" label="From" {...form.getInputProps("from")} />
        <TextInput label="For so many hours" inputMode="decimal" {...form.getInputProps("hours")} />
        <TextInput
          label="Time zone"
          list="time-zones"
          autoComplete="off"
          spellCheck={false}
          {...form.getInputProps("timeZone")}
        />
        <datalist id="time-zones">
          {zones.map((zone) => (
            <option key={zone} value={zone} />
          ))}
        </datalist>
      </div>
    </>
  );
}

const quietMs = 400;

/** What the silence would have suppressed. It follows the form when that rests. */
function Preview({ values }: { values: Values }) {
  const recurrence = recurrenceOf(values);
  const asked = JSON.stringify({ match: matchOf(values), ...(recurrence ? { recurrence } : {}) });
  const [settled] = useDebouncedValue(asked, quietMs);
  const request = useMemo(() => JSON.parse(settled) as SilencePreviewRequest, [settled]);
  const sound =
    Object.keys(request.match).length > 0 &&
    (!request.recurrence || (request.recurrence.weekdays.length > 0 && request.recurrence.durationMinutes > 0));
  const { data, error } = useQuery({ ...silencePreview(request), enabled: sound, placeholderData: keepPreviousData });
  let said: ReactNode;
  if (!sound) {
    said = <p className={styles.sub}>Name at least one condition to see what it would have suppressed.</p>;
  } else if (error) {
    said = (
      <p className={styles.sub} role="alert">
        No preview. {reasonOf(error)}
      </p>
    );
  } else if (data) {
    said = (
      <>
        <p className={styles.big}>
          {counted(data.suppressedMessages, "message")} of {counted(data.suppressedAlerts, "alert")}
        </p>
        <p className={styles.sub}>
          of {counted(data.messages, "message")} of {counted(data.alerts, "alert")} in all
          {request.recurrence && `; ${counted(data.matchedAlerts, "alert")} match at any time`}.
          {!data.complete && " There were more; only the newest were looked at."}
        </p>
        <ul className={styles.list}>
          {data.newest.map((alert) => (
            <li key={alert.id}>
              <SeverityMark severity={alert.severity} short />{" "}
              <Link to="/inbox/$alertId" params={{ alertId: alert.id }}>
                {alert.title}
              </Link>
              <div className={styles.sub}>
                {alert.ruleName} · <ExactTime at={alert.firedAt} />
              </div>
            </li>
          ))}
        </ul>
        {data.windows.length > 0 && (
          <>
            <h3>Next windows</h3>
            <ul className={styles.list}>
              {data.windows.map(({ from, until }) => (
                <li key={from} className={styles.sub}>
                  <ExactTime at={from} /> to <ExactTime at={until} />
                </li>
              ))}
            </ul>
          </>
        )}
      </>
    );
  }
  return (
    <div aria-live="polite" className={asked === settled ? "" : styles.outdated}>
      <h2>In the last 24 hours it would have suppressed</h2>
      {said}
    </div>
  );
}
