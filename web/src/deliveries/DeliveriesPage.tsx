import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { type CSSProperties, type RefObject, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { type NotificationFilter, notificationAny, notificationCounts, notificationList } from "../api/notifications";
import { useMay } from "../api/operations";
import { ruleNames } from "../api/rules";
import { webhookList } from "../api/webhooks";
import { Page } from "../frame/Page";
import { Button } from "../ui/Button";
import { useCommands } from "../ui/commands";
import { FilterMenu } from "../ui/FilterMenu";
import { When } from "../ui/Instant";
import { IconPending, IconRetrying, IconSearch } from "../ui/icons";
import { LoadMore } from "../ui/LoadMore";
import { useLastError } from "../ui/lastError";
import { MasterDetail, useSplit } from "../ui/MasterDetail";
import { statusMeaning } from "../ui/marks";
import { SearchField } from "../ui/SearchField";
import { Select } from "../ui/Select";
import { Empty, Failed, SkeletonRows } from "../ui/states";
import { Flow } from "../webhooks/Flow";
import { DeliveryDetail } from "./DeliveryDetail";
import { DeliveryRow } from "./DeliveryRow";
import styles from "./deliveries.module.css";
import { type DeliverySearch, parseSearch, spans, toFilter, toRetry } from "./filter";
import { RetryAll } from "./RetryAll";
import { tabsOf } from "./tabs";

/** Sent and waiting messages: the list, and beside it the open message. The address contains both. */
export function DeliveriesPage() {
  const search = useSearch({ from: "/deliveries" });
  const { notificationId: openId } = useParams({ strict: false });
  const navigate = useNavigate();
  const filter = useMemo(() => toFilter(search), [search]);
  const split = useSplit();
  const may = useMay();
  const toSend = toRetry(filter);
  const any = useQuery({
    ...notificationAny({ ...filter, status: toSend }),
    enabled: may("retryNotifications") && toSend.length > 0,
  });
  const [retrying, setRetrying] = useState(false);
  const searchField = useRef<HTMLInputElement>(null);
  /** Moves the focus to another row, and opens that row beside the list. */
  const step = (by: 1 | -1, event?: KeyboardEvent) => {
    // The arrow keys scroll what is open.
    if (openId !== undefined && (!split || event?.key.startsWith("Arrow"))) return false;
    const rows = [...document.querySelectorAll<HTMLElement>("[data-delivery]")];
    const at = rows.findIndex((row) => row === document.activeElement || row.dataset.delivery === openId);
    const next = rows[at < 0 ? 0 : at + by];
    if (!next) return false;
    next.focus();
    if (openId !== undefined) next.click();
    return true;
  };
  useGoingOn(openId);
  useEffect(() => {
    document.title = "Deliveries · Tocsin";
  }, []);
  useCommands([
    {
      id: "close",
      section: "Actions",
      label: "Close message",
      keys: ["escape"],
      enabled: openId !== undefined,
      run: () => navigate({ to: "/deliveries", search: true }),
    },
    { id: "down", section: "Actions", label: "Next message", keys: ["j", "arrowdown"], run: (event) => step(1, event) },
    {
      id: "up",
      section: "Actions",
      label: "Previous message",
      keys: ["k", "arrowup"],
      run: (event) => step(-1, event),
    },
    {
      id: "search",
      section: "Actions",
      label: "Search messages",
      keys: ["/"],
      run: () => searchField.current?.focus(),
    },
  ]);

  const flowOf = filter.webhookId.length === 1 && openId === undefined ? filter.webhookId[0] : undefined;
  if (openId !== undefined && !split) {
    return (
      <Page title="Delivery" bare>
        <DeliveryDetail key={openId} id={openId} alone may={may("retryNotification")} />
      </Page>
    );
  }
  return (
    <Page
      title="Deliveries"
      crowded
      header={
        <>
          <StatusTabs search={search} filter={filter} />
          <Filters search={search} searchRef={searchField} />
        </>
      }
      actions={
        any.data &&
        may("retryNotifications") &&
        toSend.length > 0 && (
          <Button onClick={() => setRetrying(true)}>
            <IconRetrying size={16} aria-hidden="true" />
            Send all matching again
          </Button>
        )
      }
    >
      <MasterDetail
        list={
          <section className={styles.list} aria-label="Deliveries" tabIndex={-1}>
            {flowOf && (
              <div className={styles.flow}>
                <Flow webhookId={flowOf} />
              </div>
            )}
            <List filter={filter} openId={openId} narrow={!split || openId !== undefined} />
          </section>
        }
        detail={
          openId !== undefined && (
            <DeliveryDetail key={openId} id={openId} alone={false} may={may("retryNotification")} />
          )
        }
      />
      {retrying && <RetryAll filter={filter} onClose={() => setRetrying(false)} />}
    </Page>
  );
}

/** Who closes a message continues at its row, unless the focus is already elsewhere. */
function useGoingOn(openId: string | undefined) {
  const before = useRef(openId);
  useLayoutEffect(() => {
    const closed = before.current;
    before.current = openId;
    if (closed === undefined || openId !== undefined || document.activeElement !== document.body) return;
    document.querySelector<HTMLElement>(`[data-delivery="${CSS.escape(closed)}"]`)?.focus();
  }, [openId]);
}

/** The messages by status. */
function StatusTabs({ search, filter }: { search: DeliverySearch; filter: NotificationFilter }) {
  const { data: counts } = useQuery(notificationCounts(filter));
  return (
    <nav className={styles.tabs} aria-label="Status">
      <Link
        to="/deliveries"
        search={parseSearch({ ...search, status: undefined })}
        className={styles.tab}
        style={{ "--hue": "var(--accent)" } as CSSProperties}
        activeOptions={{ exact: true }}
        aria-current={filter.status.length === 0 ? "page" : undefined}
      >
        All
      </Link>
      {tabsOf(search, counts).map(({ status, count, current, search: to }) => {
        const { icon: Icon, word, hue } = statusMeaning[status];
        return (
          <Link
            key={status}
            to="/deliveries"
            search={to}
            className={styles.tab}
            style={{ "--hue": hue } as CSSProperties}
            activeOptions={{ exact: true }}
            aria-current={current ? "page" : undefined}
          >
            <Icon size={15} stroke={2} aria-hidden="true" />
            {word}
            <span className={styles.count}>{count}</span>
          </Link>
        );
      })}
    </nav>
  );
}

function Filters({ search, searchRef }: { search: DeliverySearch; searchRef: RefObject<HTMLInputElement | null> }) {
  const navigate = useNavigate();
  const { data: webhooks } = useQuery(webhookList());
  const { data: rules } = useQuery(ruleNames());
  const change = (next: Record<string, unknown>) =>
    void navigate({ to: ".", search: parseSearch({ ...search, ...next }), replace: true });
  const single = (["alert", "digest", "silence", "digestsOf"] as const).find((name) => search[name] !== undefined);
  return (
    <search className={styles.filters}>
      <FilterMenu
        name="Webhook"
        search
        choices={(webhooks ?? []).map(({ id, name }) => ({ value: id, text: name }))}
        chosen={search.webhook ?? []}
        unknown={webhooks ? "deleted webhook" : "…"}
        onChange={(webhook) => change({ webhook })}
      />
      <FilterMenu
        name="Rule"
        search
        choices={(rules ?? []).map(({ id, name }) => ({ value: id, text: name }))}
        chosen={search.rule ?? []}
        unknown={rules ? "deleted rule" : "…"}
        onChange={(rule) => change({ rule })}
      />
      <Select
        bare
        label="Created"
        options={spans}
        value={search.within ?? ""}
        onChange={(within) => change({ within })}
      />
      {single && (
        <Button look="quiet" onClick={() => change({ [single]: undefined })}>
          Clear {single === "digestsOf" ? "silence" : single} filter
        </Button>
      )}
      <SearchField
        label="Search titles and IDs"
        value={search.q ?? ""}
        onChange={(q) => change({ q })}
        inputRef={searchRef}
      />
    </search>
  );
}

interface ListProps {
  filter: NotificationFilter;
  openId: string | undefined;
  narrow: boolean;
}

function List({ filter, openId, narrow }: ListProps) {
  const list = useInfiniteQuery(notificationList(filter));
  const failure = useLastError(list);
  const { data: rules } = useQuery(ruleNames());
  const names = useMemo(() => new Map(rules?.map(({ id, name }) => [id, name])), [rules]);
  const items = list.data?.pages.flatMap((page) => page.items) ?? [];
  if (list.isPending && !failure)
    return <SkeletonRows headed={!narrow} count={12} height={narrow ? 60 : 41} label="Loading messages" />;
  const searchedTo = list.data?.pages.at(-1)?.searchedTo;
  if (items.length === 0 && !searchedTo) {
    return failure ? <Failed error={failure} onRetry={list.refetch} /> : <NoMessages filter={filter} />;
  }
  return (
    <>
      {!narrow && (
        <div className={`${styles.row} ${styles.heads}`} aria-hidden="true">
          <span>Status</span>
          <span>Webhook and message</span>
          <span>Attempts</span>
          <span>Response</span>
          <span>Latency</span>
          <span>Completed or next attempt</span>
          <span className={styles.ago}>Created</span>
        </div>
      )}
      <ul className={styles.rows}>
        {items.map((notification) => (
          <li key={notification.id}>
            <DeliveryRow
              notification={notification}
              ruleName={notification.ruleId === undefined ? undefined : names.get(notification.ruleId)}
              selected={notification.id === openId}
              narrow={narrow}
            />
          </li>
        ))}
      </ul>
      {list.hasNextPage && (
        <div className={styles.more}>
          <LoadMore list={list}>{searchedTo ? "Search older messages" : "Load older messages"}</LoadMore>
          {searchedTo && (
            <p className={styles.nothing}>
              Searched back to <When at={searchedTo} />.
            </p>
          )}
        </div>
      )}
    </>
  );
}

function NoMessages({
  filter: { status, webhookId, ruleId, alertId, digestId, silenceId, digestOfSilenceId, hours, q },
}: {
  filter: NotificationFilter;
}) {
  const narrowed =
    [status, webhookId, ruleId, alertId, digestId, silenceId, digestOfSilenceId].some((list) => list.length > 0) ||
    hours > 0 ||
    q !== "";
  return narrowed ? (
    <Empty icon={IconSearch} title="No matching messages">
      <p>
        <Link to="/deliveries">Show all messages</Link>
      </p>
    </Empty>
  ) : (
    <Empty icon={IconPending} title="No messages yet">
      <p>Each alert sends one message to each webhook of its rule.</p>
    </Empty>
  );
}
