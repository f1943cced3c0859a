import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link, useSearch } from "@tanstack/react-router";
import { type ReactNode, useEffect, useState } from "react";
import type { Silence } from "../api/client";
import { useMay } from "../api/operations";
import { ruleNames } from "../api/rules";
import { endSilence, openSilences, pastSilences, silenceKeys } from "../api/silences";
import { Page } from "../frame/Page";
import { Button, buttonClass } from "../ui/Button";
import { Ago, ExactTime } from "../ui/Instant";
import { IconPlus, IconSilence } from "../ui/icons";
import { LoadMore } from "../ui/LoadMore";
import { useLastError } from "../ui/lastError";
import { RemoveDialog } from "../ui/RemoveDialog";
import { Empty, Failed, SkeletonRows } from "../ui/states";
import table from "../ui/table.module.css";
import { hasEnded, matchWords, recurrenceWords } from "./form";
import { Digests, SuppressedBy } from "./SuppressedBy";
import { parseSilences } from "./search";
import styles from "./silences.module.css";

export function SilencesPage() {
  const { show } = parseSilences(useSearch({ strict: false }));
  const may = useMay();
  const past = show === "past";
  useEffect(() => {
    document.title = "Silences · Tocsin";
  }, []);
  return (
    <Page
      title="Silences"
      scrolls
      header={
        <nav className={styles.tabs} aria-label="Which silences">
          <Link to="/silences" search={{}} activeOptions={{ exact: true }} aria-current={past ? undefined : "page"}>
            Active and upcoming
          </Link>
          <Link
            to="/silences"
            search={{ show: "past" }}
            activeOptions={{ exact: true }}
            aria-current={past ? "page" : undefined}
          >
            Past
          </Link>
        </nav>
      }
      actions={
        may("createSilence") && (
          <Link to="/silences/new" data-add="silences" className={buttonClass("primary")}>
            <IconPlus size={16} aria-hidden="true" />
            New silence
          </Link>
        )
      }
    >
      {past ? <Past /> : <Open mayCreate={may("createSilence")} mayEnd={may("endSilence")} />}
    </Page>
  );
}

function Open({ mayCreate, mayEnd }: { mayCreate: boolean; mayEnd: boolean }) {
  const silences = useQuery(openSilences());
  const failure = useLastError(silences);
  const [ending, setEnding] = useState<Silence>();
  if (silences.data === undefined) {
    if (failure) return <Failed error={failure} onRetry={silences.refetch} />;
    return <SkeletonRows headed count={4} height={56} label="Loading silences" />;
  }
  if (silences.data.length === 0) {
    return (
      <Empty icon={IconSilence} title="Nothing is silenced">
        <p>
          A silence suppresses messages for a while: during maintenance, or while a known problem is being fixed. Alerts
          are still raised, and the inbox shows them.
        </p>
        {mayCreate ? (
          <Link to="/silences/new" className={buttonClass("primary")}>
            Create silence
          </Link>
        ) : (
          <p>Operators can create silences.</p>
        )}
      </Empty>
    );
  }
  // Silences in force come first.
  const sorted = silences.data.toSorted((a, b) => Number(b.state === "ACTIVE") - Number(a.state === "ACTIVE"));
  return (
    <>
      <SilenceTable
        silences={sorted}
        actions={
          mayEnd
            ? (silence) => (
                <Button data-remove="silences" onClick={() => setEnding(silence)} aria-label={`End ${silence.name}`}>
                  End
                </Button>
              )
            : undefined
        }
      />
      {ending && (
        <RemoveDialog
          title={`End “${ending.name}”?`}
          action="End silence"
          remove={() => endSilence(ending.id)}
          done={`“${ending.name}” has ended.`}
          notDone={`“${ending.name}” was not ended.`}
          stale={silenceKeys.all}
          onClose={() => setEnding(undefined)}
        >
          Messages are sent again from now on. Those that it has suppressed stay suppressed; you can send them from the
          deliveries page.{ending.digest && " Each webhook gets a digest that lists them."}
        </RemoveDialog>
      )}
    </>
  );
}

function Past() {
  const silences = useInfiniteQuery(pastSilences());
  const failure = useLastError(silences);
  if (silences.data === undefined) {
    if (failure) return <Failed error={failure} onRetry={silences.refetch} />;
    return <SkeletonRows headed count={4} height={56} label="Loading silences" />;
  }
  const list = silences.data.pages.flatMap(({ items }) => items);
  if (list.length === 0) return <Empty icon={IconSilence} title="No past silences" />;
  return (
    <>
      <SilenceTable silences={list} actions={undefined} />
      {silences.hasNextPage && (
        <div className={styles.more}>
          <LoadMore list={silences}>Load older silences</LoadMore>
        </div>
      )}
    </>
  );
}

interface TableProps {
  silences: readonly Silence[];
  actions: ((silence: Silence) => ReactNode) | undefined;
}

function SilenceTable({ silences, actions }: TableProps) {
  const { data: rules } = useQuery(ruleNames());
  const nameOf = (id: string) => rules?.find((rule) => rule.id === id)?.name ?? "deleted rule";
  return (
    <table className={table.table}>
      <thead>
        <tr>
          <th scope="col">Silence</th>
          <th scope="col">State</th>
          <th scope="col">Suppressed</th>
          {actions && (
            <th scope="col">
              <span className="visually-hidden">Actions</span>
            </th>
          )}
        </tr>
      </thead>
      <tbody>
        {silences.map((silence) => (
          <tr key={silence.id} id={silence.id}>
            <td>
              <Link to="/silences/$silenceId" params={{ silenceId: silence.id }} className={table.name}>
                {silence.name}
              </Link>
              <div className={table.sub}>{matchWords(silence.match, nameOf)}</div>
              {silence.reason && <div className={table.sub}>{silence.reason}</div>}
              <div className={table.sub}>
                by {silence.createdBy}, <Ago at={silence.createdAt} />
              </div>
            </td>
            <td data-label="State">
              <State silence={silence} />
            </td>
            <td data-label="Suppressed">
              <SuppressedBy silence={silence} />
              {(silence.digest || silence.digests > 0) && (
                <div className={table.sub}>
                  <Digests silence={silence} />
                </div>
              )}
            </td>
            {actions && (
              <td>
                <div className={table.actions}>{actions(silence)}</div>
              </td>
            )}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** In force, upcoming or over, and until when. */
export function State({ silence }: { silence: Silence }) {
  const { state, from, until, recurrence, problem, endedAt, endedBy, endsAt } = silence;
  if (problem !== undefined) {
    return (
      <>
        <span className={table.bad}>Cannot be used</span>
        <div className={table.sub}>It suppresses nothing: {problem}</div>
      </>
    );
  }
  return (
    <>
      {state === "ACTIVE" && (
        <span className={styles.active}>
          <IconSilence size={15} stroke={1.9} aria-hidden="true" /> Active
        </span>
      )}
      {state === "UPCOMING" && "Upcoming"}
      {state === "PAST" && <span className={table.quiet}>{hasEnded(silence) ? "Past" : "No further window"}</span>}
      <div className={table.sub}>
        {state === "ACTIVE" && until && (
          <>
            until <ExactTime at={until} />
          </>
        )}
        {state === "UPCOMING" && from && until && (
          <>
            from <ExactTime at={from} />
          </>
        )}
        {state === "PAST" &&
          (endedAt ? (
            <>
              ended by {endedBy} on <ExactTime at={endedAt} />
            </>
          ) : (
            endsAt && (
              <>
                {hasEnded(silence) ? "ended" : "before its end"} on <ExactTime at={endsAt} />
              </>
            )
          ))}
      </div>
      {recurrence && <div className={table.sub}>{recurrenceWords(recurrence)}</div>}
    </>
  );
}
