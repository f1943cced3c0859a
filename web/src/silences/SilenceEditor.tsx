import { useForm } from "@mantine/form";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { type Me, me } from "../api/access";
import { oneAlert } from "../api/alerts";
import type { Silence } from "../api/client";
import { ApiError } from "../api/errors";
import { placeErrors } from "../api/fields";
import { mayCall } from "../api/operations";
import { ruleNames } from "../api/rules";
import { createSilence, oneSilence, readSilence, silenceKeys, updateSilence } from "../api/silences";
import { Page } from "../frame/Page";
import { Button, buttonClass } from "../ui/Button";
import { ConflictDialog } from "../ui/ConflictDialog";
import columns from "../ui/columns.module.css";
import { Form } from "../ui/Form";
import formStyles from "../ui/form.module.css";
import { ExactTime } from "../ui/Instant";
import { LeaveGuard } from "../ui/LeaveGuard";
import { useLastError } from "../ui/lastError";
import { Failed, Forbidden, SkeletonForm } from "../ui/states";
import { useToast } from "../ui/toast";
import { useHere } from "../ui/useHere";
import { useServerForm } from "../ui/useServerForm";
import { differences, merged } from "./conflict";
import {
  blank,
  definitionOf,
  fields,
  hasEnded,
  inHours,
  pathOf,
  type Values,
  valuesFor,
  valuesOf,
  wrongLines,
} from "./form";
import { SilenceFields } from "./SilenceFields";
import { Preview } from "./SilencePreview";
import { State } from "./SilencesPage";
import { Digests, SuppressedBy } from "./SuppressedBy";
import { parseNewSilence } from "./search";
import styles from "./silences.module.css";

export function NewSilencePage() {
  const { alert } = parseNewSilence(useSearch({ strict: false }));
  const who = useQuery(me());
  const source = useQuery({ ...oneAlert(alert ?? ""), enabled: alert !== undefined });
  const failure = useLastError(who);
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
        <Editor key={alert} initial={source.data ? valuesFor(source.data) : { ...blank(), endsAt: inHours(1) }} />
      )}
    </Page>
  );
}

export function EditSilencePage() {
  const { silenceId = "" } = useParams({ strict: false });
  const who = useQuery(me());
  const silence = useQuery(oneSilence(silenceId));
  const failure = useLastError(who.data ? silence : who, silenceId);
  useEffect(() => {
    document.title = "Silence · Tocsin";
  }, []);
  return (
    <Page title={silence.data?.name ?? "Silence"}>
      {who.data && silence.data ? (
        <Editor key={silenceId} initial={valuesOf(silence.data)} silence={silence.data} who={who.data} />
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
  /** The stored silence; none for a new one. */
  silence?: Silence;
  who?: Me;
}

function Editor({ initial, silence, who }: EditorProps) {
  const navigate = useNavigate();
  const cache = useQueryClient();
  const toast = useToast();
  const form = useForm<Values>({ initialValues: initial });
  /** The version that the edit is based on. It stays while the person edits, whatever is saved meanwhile. */
  const [base, setBase] = useState({ silence, values: initial });
  const [theirs, setTheirs] = useState<Silence>();
  const here = useHere();
  const done = useRef(false);
  const isDirty = !same(form.values, base.values);
  const take = (newest: Silence, values = valuesOf(newest)) => {
    setBase({ silence: newest, values: valuesOf(newest) });
    form.setValues(values);
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: only what comes from the server counts.
  useEffect(() => {
    if (silence && silence.version !== base.silence?.version && !isDirty) take(silence);
  }, [silence?.version]);
  const save = useServerForm({
    form,
    fields,
    path: pathOf,
    send: (values: Values) =>
      base.silence ? updateSilence(base.silence, definitionOf(values)) : createSilence(definitionOf(values)),
    onRefused: async (error) => {
      if (!silence || !(error instanceof ApiError && error.status === 412)) return false;
      try {
        setTheirs(await readSilence(silence.id));
      } catch (cause) {
        save.refuse(placeErrors(cause, fields));
      }
      return true;
    },
    onSaved: async (saved) => {
      toast(silence ? `“${saved.name}” was saved.` : `“${saved.name}” was created.`, "done");
      done.current = true;
      await cache.invalidateQueries({ queryKey: silenceKeys.all });
      if (here()) await navigate({ to: "/silences" });
    },
  });
  const submit = () => {
    const wrong = wrongLines(form.values);
    if (Object.keys(wrong).length > 0) save.refuse({ fields: wrong, rest: [] });
    else save.submit(form.values);
  };
  const over = silence !== undefined && hasEnded(silence);
  const may = silence === undefined || (mayCall(who, "updateSilence") && !over);
  return (
    <div className={columns.page}>
      <div className={columns.columns}>
        <div className={styles.scroll}>
          <Form problems={save.problems} refusals={save.refusals} onSubmit={submit}>
            <LeaveGuard dirty={() => isDirty && !done.current} whole>
              <p>
                {silence
                  ? `Your changes to “${silence.name}” have not been saved.`
                  : "The silence has not been created."}
              </p>
            </LeaveGuard>
            {silence && <SilenceStatus silence={silence} over={over} />}
            <fieldset disabled={!may || save.busy} className={formStyles.sections}>
              <SilenceFields form={form} begun={silence?.state === "ACTIVE"} />
            </fieldset>
            <div className={formStyles.actions}>
              {may && (
                <Button type="submit" look="primary" busy={save.busy}>
                  {silence ? "Save silence" : "Create silence"}
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
      {theirs && (
        <Conflicts
          base={base.values}
          theirs={theirs}
          mine={form.values}
          onTake={(values) => {
            take(theirs, values);
            setTheirs(undefined);
            save.clearProblems();
          }}
          onClose={() => setTheirs(undefined)}
        />
      )}
    </div>
  );
}

const same = (a: Values, b: Values) => JSON.stringify(a) === JSON.stringify(b);

interface ConflictsProps {
  base: Values;
  theirs: Silence;
  mine: Values;
  onTake: (values: Values) => void;
  onClose: () => void;
}

/** Somebody else has saved the silence meanwhile. */
function Conflicts({ base, theirs, mine, onTake, onClose }: ConflictsProps) {
  const { data: rules } = useQuery(ruleNames());
  const sides = { theirs: valuesOf(theirs), mine };
  const nameOf = (id: string) => rules?.find((rule) => rule.id === id)?.name ?? "deleted rule";
  return (
    <ConflictDialog
      what="silence"
      found={differences(base, sides, nameOf)}
      onTake={(own) => onTake(merged(sides, own))}
      onClose={onClose}
    />
  );
}

function SilenceStatus({ silence, over }: { silence: Silence; over: boolean }) {
  return (
    <div>
      <State silence={silence} />
      <p className={styles.sub}>
        <SuppressedBy silence={silence} /> suppressed. Created by {silence.createdBy} on{" "}
        <ExactTime at={silence.createdAt} />
        {silence.version > 1 && (
          <>
            , last changed by {silence.updatedBy} on <ExactTime at={silence.updatedAt} />
          </>
        )}
        .
        {(silence.digest || silence.digests > 0) && (
          <>
            {" "}
            Digests: <Digests silence={silence} />.
          </>
        )}
        {over && " It has ended and can no longer be changed."}
      </p>
    </div>
  );
}
