import { TextInput } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { auditLog } from "../api/access";
import { useMay } from "../api/operations";
import { Button } from "../ui/Button";
import { ClockTime } from "../ui/Instant";
import { IconHistory } from "../ui/icons";
import { LoadMore } from "../ui/LoadMore";
import { useLastError } from "../ui/lastError";
import { Select } from "../ui/Select";
import { Empty, Failed, SkeletonRows } from "../ui/states";
import table from "../ui/table.module.css";
import { sentenceCase } from "../ui/words";
import { AccessPage } from "./AccessPage";
import styles from "./access.module.css";
import { changes, deed, parseAuditSearch, toAuditFilter } from "./audit";

const kinds = [
  { value: "", label: "Everything" },
  { value: "rule", label: "Rules" },
  { value: "webhook", label: "Webhooks" },
  { value: "routing", label: "Routing policy" },
  { value: "replay", label: "Replays" },
  { value: "alert", label: "Alerts" },
  { value: "silence", label: "Silences" },
  { value: "note", label: "Notes" },
  { value: "view", label: "Saved views" },
  { value: "notification", label: "Deliveries" },
  { value: "user", label: "Users" },
  { value: "teams", label: "Teams" },
  { value: "token", label: "Tokens" },
  { value: "session", label: "Sign-ins" },
];

/** The kinds to choose from; a filter may be for a rare one, such as that of an entry, and says so. */
const kindsWith = (chosen: string) =>
  kinds.some(({ value }) => value === chosen) ? kinds : [...kinds, { value: chosen, label: sentenceCase(chosen) }];

export function AuditPage() {
  const filter = toAuditFilter(useSearch({ from: "/audit" }));
  const about = filter.objectKind ?? "";
  const navigate = useNavigate();
  const change = (next: Record<string, string>) =>
    void navigate({ to: "/audit", search: (search) => parseAuditSearch({ ...search, ...next }), replace: true });
  const log = useInfiniteQuery({ ...auditLog(filter), enabled: useMay()("listAudit") });
  const failure = useLastError(log);
  const entries = log.data?.pages.flatMap((page) => page.items) ?? [];
  return (
    <AccessPage title="Audit log" admin>
      <search className={styles.filters}>
        <Select label="About" options={kindsWith(about)} value={about} onChange={(next) => change({ about: next })} />
        <Person key={filter.actor} by={filter.actor ?? ""} onChange={(by) => change({ by })} />
        {filter.objectId && <Button onClick={() => change({ id: "" })}>Show all entries</Button>}
      </search>
      {log.isPending && !failure ? (
        <SkeletonRows headed count={8} height={48} label="Loading the audit log" />
      ) : log.data === undefined ? (
        <Failed error={failure} onRetry={log.refetch} />
      ) : entries.length === 0 ? (
        <Empty icon={IconHistory} title="No entries" />
      ) : (
        <table className={table.table}>
          <thead>
            <tr>
              <th scope="col">What</th>
              <th scope="col">When</th>
              <th scope="col">From</th>
            </tr>
          </thead>
          <tbody>
            {entries.map((entry) => (
              <tr key={entry.id}>
                <td>
                  <div className={styles.deed}>
                    <strong>{entry.actor}</strong> {deed(entry)}
                  </div>
                  {changes(entry).map((line) => (
                    <p key={line} className={styles.change}>
                      {line}
                    </p>
                  ))}
                  {entry.objectId && filter.objectId !== entry.objectId && (
                    <button
                      type="button"
                      className={styles.same}
                      onClick={() => change({ about: entry.objectKind, id: entry.objectId ?? "" })}
                    >
                      Show only this {entry.objectKind}
                    </button>
                  )}
                </td>
                <td>
                  <ClockTime at={entry.at} stop />
                </td>
                <td className={table.quiet}>
                  {entry.via}
                  {entry.address && ` · ${entry.address}`}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {log.hasNextPage && (
        <div className={styles.more}>
          <LoadMore list={log}>Load older entries</LoadMore>
        </div>
      )}
    </AccessPage>
  );
}

/** Whose changes to show. The request is sent when the name is complete. */
function Person({ by, onChange }: { by: string; onChange: (by: string) => void }) {
  const [typed, setTyped] = useState(by);
  return (
    <form
      className={styles.by}
      onSubmit={(event) => {
        event.preventDefault();
        onChange(typed.trim());
      }}
    >
      <TextInput
        label="By"
        placeholder="ada@example.com"
        value={typed}
        onChange={(event) => setTyped(event.currentTarget.value)}
      />
      <Button type="submit">Show</Button>
    </form>
  );
}
