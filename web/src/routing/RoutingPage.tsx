import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import type { RoutingPolicy, RoutingRoute, Webhook } from "../api/client";
import { ApiError } from "../api/errors";
import { useMay } from "../api/operations";
import { routingKeys, routingPolicy, updateRoutingPolicy } from "../api/routing";
import { ruleNames } from "../api/rules";
import { teamNames } from "../api/teams";
import { webhookList } from "../api/webhooks";
import { Page } from "../frame/Page";
import { matchWords } from "../silences/form";
import { Button } from "../ui/Button";
import columns from "../ui/columns.module.css";
import { When } from "../ui/Instant";
import { IconPlus } from "../ui/icons";
import { LeaveGuard } from "../ui/LeaveGuard";
import { useLastError } from "../ui/lastError";
import { Failed, SkeletonForm } from "../ui/states";
import { useToast } from "../ui/toast";
import { counted } from "../ui/words";
import { alike, type Draft, definitionOf, draftOf, matchesAll, moved, problemsOf } from "./policy";
import { DefaultEditor, RouteEditor } from "./RouteEditor";
import styles from "./routing.module.css";
import { Escalation } from "./Steps";
import { Tester } from "./Tester";

export function RoutingPage() {
  const policy = useQuery(routingPolicy());
  const failure = useLastError(policy);
  useEffect(() => {
    document.title = "Routing · Tocsin";
  }, []);
  return (
    <Page title="Routing">
      {policy.data ? (
        <Policy policy={policy.data} />
      ) : failure ? (
        <Failed error={failure} onRetry={policy.refetch} />
      ) : (
        <SkeletonForm label="Loading the routing policy" />
      )}
    </Page>
  );
}

/** The route that is being edited; the default is not one of them. */
type Editing = number | "new" | "default" | undefined;

function Policy({ policy }: { policy: RoutingPolicy }) {
  const may = useMay()("updateRoutingPolicy");
  /** The version that the changes are based on. It stays while there are changes, whatever is saved meanwhile. */
  const [base, setBase] = useState(policy);
  const [draft, setDraft] = useState(() => draftOf(policy));
  const [editing, setEditing] = useState<Editing>();
  const { page, next } = useNextFocus();
  const dirty = !alike(draft, draftOf(base));
  const unsaved = dirty || editing !== undefined;
  const take = (newest: RoutingPolicy) => {
    setBase(newest);
    setDraft(draftOf(newest));
    setEditing(undefined);
    next("policy");
  };
  const latest = useRef(editing);
  useEffect(() => {
    latest.current = editing;
  });
  /** What was changed while the policy was being saved stays. */
  const follow = (saved: RoutingPolicy, sent: Draft) => {
    setBase(saved);
    setDraft((now) => (now === sent ? draftOf(saved) : now));
    if (latest.current === undefined) next("policy");
  };
  useEffect(() => {
    if (unsaved || policy.version <= base.version) return;
    setBase(policy);
    setDraft(draftOf(policy));
  }, [policy, base.version, unsaved]);
  const webhooks = useQuery(webhookList()).data ?? [];
  const teams = useQuery(teamNames()).data ?? [];
  const change = (changed: Partial<Draft>, ...then: string[]) => {
    setDraft({ ...draft, ...changed });
    setEditing(undefined);
    next(...then, "save", "add");
  };
  const cancel = (back: string) => {
    setEditing(undefined);
    next(back);
  };
  const put = (at: number, route: Draft["routes"][number]) =>
    change({ routes: draft.routes.toSpliced(at, at < draft.routes.length ? 1 : 0, route) });
  const others = (at: number) => draft.routes.filter((_, n) => n !== at).map(({ name }) => name);
  return (
    <div ref={page} className={columns.page}>
      <div className={columns.columns}>
        <div className={styles.scroll}>
          <div className={styles.policy}>
            <PolicyStatus policy={policy} />
            {may && dirty && editing === undefined && (
              <Saving base={base} draft={draft} onSaved={follow} onTake={take} onReset={() => take(base)} />
            )}
            <ol className={styles.routes} aria-label="Routes">
              {draft.routes.map((route, at) => (
                <li key={route.name}>
                  {editing === at ? (
                    <RouteEditor
                      route={route}
                      taken={others(at)}
                      webhooks={webhooks}
                      teams={teams}
                      onDone={(edited) => put(at, edited)}
                      onCancel={() => cancel(`edit ${route.name}`)}
                    />
                  ) : (
                    <RouteCard
                      number={at + 1}
                      route={route}
                      webhooks={webhooks}
                      actions={
                        may && editing === undefined
                          ? {
                              first: at === 0,
                              last: at === draft.routes.length - 1,
                              onMove: (by) =>
                                change(
                                  { routes: moved(draft.routes, at, at + by) },
                                  `${by < 0 ? "up" : "down"} ${route.name}`,
                                  `edit ${route.name}`,
                                ),
                              onEdit: () => setEditing(at),
                              onRemove: () => change({ routes: draft.routes.toSpliced(at, 1) }),
                            }
                          : undefined
                      }
                    />
                  )}
                </li>
              ))}
            </ol>
            {editing === "new" ? (
              <RouteEditor
                taken={others(-1)}
                webhooks={webhooks}
                teams={teams}
                onDone={(made) => put(draft.routes.length, made)}
                onCancel={() => cancel("add")}
              />
            ) : (
              may &&
              editing === undefined && (
                <div>
                  <Button data-next="add" onClick={() => setEditing("new")}>
                    <IconPlus size={16} aria-hidden="true" />
                    Add route
                  </Button>
                </div>
              )
            )}
            {editing === "default" ? (
              <DefaultEditor
                webhookIds={draft.defaultWebhookIds}
                escalation={draft.defaultEscalation}
                webhooks={webhooks}
                teams={teams}
                onDone={(defaultWebhookIds, defaultEscalation) => change({ defaultWebhookIds, defaultEscalation })}
                onCancel={() => cancel("default")}
              />
            ) : (
              <section className={styles.card} aria-label="Default">
                <div className={styles.head}>
                  <h2 className={styles.name}>Default</h2>
                  {may && editing === undefined && (
                    <Button data-next="default" onClick={() => setEditing("default")} aria-label="Edit default">
                      Edit
                    </Button>
                  )}
                </div>
                <p className={styles.sub}>Alerts that take no route.</p>
                <To ids={draft.defaultWebhookIds} webhooks={webhooks} />
                <Escalation steps={draft.defaultEscalation} webhooks={webhooks} />
              </section>
            )}
          </div>
        </div>
        <aside className={`${columns.aside} ${styles.aside}`} aria-label="Test">
          <Tester draft={dirty ? draft : undefined} />
        </aside>
      </div>
      <LeaveGuard dirty={() => unsaved}>Your changes to the routing policy have not been saved.</LeaveGuard>
    </div>
  );
}

/**
 * Moves the focus when what had it is gone or cannot be used any more: to the first place of those named by `next` that is
 * there after the change.
 */
function useNextFocus() {
  const page = useRef<HTMLDivElement>(null);
  const [places, setPlaces] = useState<readonly string[]>([]);
  useEffect(() => {
    for (const place of places) {
      const found = page.current?.querySelector<HTMLElement>(`[data-next="${CSS.escape(place)}"]:not(:disabled)`);
      if (!found) continue;
      found.focus({ preventScroll: place === "policy" });
      return;
    }
  }, [places]);
  return { page, next: (...then: string[]) => setPlaces(then) };
}

function PolicyStatus({ policy }: { policy: RoutingPolicy }) {
  return (
    <div tabIndex={-1} data-next="policy">
      <p>
        Routes are tried from top to bottom. An alert takes each route that matches, up to the first one that does not
        continue. Each webhook gets one message.
      </p>
      <p className={styles.sub}>
        {policy.rules === 0
          ? "No rule uses the policy yet. To use it, choose it under “Who is notified” in a rule."
          : `Used by ${counted(policy.rules, "rule")}.`}
        {policy.updatedAt && (
          <>
            {" "}
            Last changed by {policy.updatedBy}, <When at={policy.updatedAt} stop />.
          </>
        )}
      </p>
      {policy.problem !== undefined && (
        <p role="alert" className={styles.bad}>
          The stored policy cannot be used, and the rules that use it are not evaluated: {policy.problem}. Save a valid
          policy to evaluate them again.
        </p>
      )}
    </div>
  );
}

interface SavingProps {
  /** The version that was edited. */
  base: RoutingPolicy;
  draft: Draft;
  /** Called with the version that was saved, and what was sent. */
  onSaved: (saved: RoutingPolicy, sent: Draft) => void;
  /** Called with the version that is edited from then on. */
  onTake: (newest: RoutingPolicy) => void;
  onReset: () => void;
}

/** The changes are saved together, because the states in between are not valid policies. */
function Saving({ base, draft, onSaved, onTake, onReset }: SavingProps) {
  const cache = useQueryClient();
  const toast = useToast();
  const save = useMutation({
    mutationFn: (sent: Draft) => updateRoutingPolicy(base.version, definitionOf(sent)),
    onSuccess: (saved, sent) => {
      cache.setQueryData(routingKeys.policy, saved);
      onSaved(saved, sent);
      toast("The routing policy was saved.", "done");
    },
  });
  const load = useMutation({
    mutationFn: () => cache.fetchQuery({ ...routingPolicy(), staleTime: 0 }),
    onSuccess: onTake,
  });
  const failure = load.error ?? save.error;
  const overtaken = save.error instanceof ApiError && save.error.status === 412;
  return (
    <div className={styles.saving}>
      <p className={styles.sub}>Not saved yet.</p>
      {failure && (
        <ul role="alert" className={styles.bad}>
          {problemsOf(failure, draft).map((problem) => (
            <li key={problem}>{problem}</li>
          ))}
        </ul>
      )}
      <div className={styles.actions}>
        <Button look="primary" data-next="save" busy={save.isPending} onClick={() => save.mutate(draft)}>
          Save policy
        </Button>
        {overtaken ? (
          <Button busy={load.isPending} onClick={() => load.mutate()}>
            Discard mine and load theirs
          </Button>
        ) : (
          <Button onClick={onReset}>Discard changes</Button>
        )}
      </div>
    </div>
  );
}

interface CardActions {
  first: boolean;
  last: boolean;
  onMove: (by: -1 | 1) => void;
  onEdit: () => void;
  onRemove: () => void;
}

interface CardProps {
  number: number;
  route: Required<RoutingRoute>;
  webhooks: readonly Webhook[];
  actions: CardActions | undefined;
}

function RouteCard({ number, route, webhooks, actions }: CardProps) {
  const { data: rules } = useQuery(ruleNames());
  const nameOf = (id: string) => rules?.find((rule) => rule.id === id)?.name ?? "deleted rule";
  const { name } = route;
  return (
    <section className={styles.card} aria-label={name}>
      <div className={styles.head}>
        <h2 className={styles.name}>
          <span className={styles.number}>{number}</span> {name}
        </h2>
        {actions && (
          <div className={styles.actions}>
            <Button
              look="quiet"
              disabled={actions.first}
              data-next={`up ${name}`}
              onClick={() => actions.onMove(-1)}
              aria-label={`Move ${name} up`}
            >
              Up
            </Button>
            <Button
              look="quiet"
              disabled={actions.last}
              data-next={`down ${name}`}
              onClick={() => actions.onMove(1)}
              aria-label={`Move ${name} down`}
            >
              Down
            </Button>
            <Button data-next={`edit ${name}`} onClick={actions.onEdit} aria-label={`Edit ${name}`}>
              Edit
            </Button>
            <Button look="quiet" onClick={actions.onRemove} aria-label={`Remove ${name}`}>
              Remove
            </Button>
          </div>
        )}
      </div>
      <p className={styles.sub}>{matchesAll(route.match) ? "all alerts" : matchWords(route.match, nameOf)}</p>
      <To ids={route.webhookIds} webhooks={webhooks} />
      <Escalation steps={route.escalation} webhooks={webhooks} />
      <p className={styles.sub}>{route.continue ? "Continues with the next routes." : "Stops here."}</p>
    </section>
  );
}

function To({ ids, webhooks }: { ids: readonly string[]; webhooks: readonly Webhook[] }) {
  if (ids.length === 0) return <p>→ nobody</p>;
  const said = ids.map((id) => {
    const webhook = webhooks.find((one) => one.id === id);
    return webhook ? `${webhook.name}${webhook.enabled ? "" : " (disabled)"}` : "a webhook";
  });
  return <p>→ {said.join(", ")}</p>;
}
