import { TextInput } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useState } from "react";
import { type AuditFilter, auditLog } from "../api/access";
import { useMay } from "../api/operations";
import { Button } from "../ui/Button";
import { ClockTime } from "../ui/Instant";
import { IconHistory } from "../ui/icons";
import { Select } from "../ui/Select";
import { useStanding } from "../ui/standing";
import { Empty, Failed, SkeletonRows } from "../ui/states";
import table from "../ui/table.module.css";
import { AccessPage } from "./AccessPage";
import styles from "./access.module.css";
import { changes, deed } from "./audit";

const kinds = [
  { value: "", label: "Everything" },
  { value: "rule", label: "Rules" },
  { value: "webhook", label: "Webhooks" },
  { value: "alert", label: "Alerts" },
  { value: "notification", label: "Deliveries" },
  { value: "user", label: "Users" },
  { value: "token", label: "Tokens" },
  { value: "session", label: "Sign-ins" },
];

export function AuditPage() {
  const [typed, setTyped] = useState("");
  const [filter, setFilter] = useState<AuditFilter>({});
  const log = useInfiniteQuery({ ...auditLog(filter), enabled: useMay()("listAudit") });
  const failure = useStanding(log);
  const entries = log.data?.pages.flatMap((page) => page.items) ?? [];
  return (
    <AccessPage title="Audit log" admin>
      <form
        className={styles.filters}
        onSubmit={(event) => {
          event.preventDefault();
          const { actor: _, ...rest } = filter;
          setFilter(typed ? { ...rest, actor: typed } : rest);
        }}
      >
        <Select
          label="About"
          options={kinds}
          value={filter.objectKind ?? ""}
          onChange={(kind) => {
            const { objectKind: _, ...rest } = filter;
            setFilter(kind ? { ...rest, objectKind: kind } : rest);
          }}
        />
        <TextInput
          label="By"
          placeholder="ada@example.com"
          value={typed}
          onChange={(event) => setTyped(event.currentTarget.value)}
        />
        <Button type="submit">Show</Button>
      </form>
      {log.isPending && !failure ? (
        <SkeletonRows headed count={8} height={48} label="Loading the audit log" />
      ) : log.data === undefined ? (
        <Failed error={failure} onRetry={log.refetch} />
      ) : entries.length === 0 ? (
        <Empty icon={IconHistory} title="No changes" />
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
                  <div>
                    <strong>{entry.actor}</strong> {deed(entry)}
                  </div>
                  {changes(entry).map((line) => (
                    <p key={line} className={styles.change}>
                      {line}
                    </p>
                  ))}
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
          <Button disabled={log.isFetchingNextPage} onClick={() => void log.fetchNextPage()}>
            Load older entries
          </Button>
        </div>
      )}
    </AccessPage>
  );
}
