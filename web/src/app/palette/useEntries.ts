import { useMantineColorScheme } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { useSignOut } from "../../access/signOut";
import { isAtLeast, me } from "../../api/access";
import { findAlerts } from "../../api/alerts";
import type { Alert } from "../../api/client";
import { ruleList } from "../../api/rules";
import { webhookList } from "../../api/webhooks";
import { useOpenAlert } from "../../inbox/AlertDetail";
import { useAlertAction } from "../../inbox/actions";
import { useReading, useUndo } from "../../inbox/bulk";
import { toSearch, wide } from "../../inbox/filter";
import { headline, place } from "../../inbox/headline";
import { canBecome } from "../../inbox/rows";
import {
  IconAcknowledged,
  IconDark,
  IconFiring,
  IconHeart,
  IconHistory,
  IconInbox,
  IconKey,
  IconLight,
  IconPending,
  IconPerson,
  IconPlus,
  IconResolved,
  IconRules,
  IconSearch,
  IconSignOut,
  IconSystem,
  IconWebhook,
} from "../../ui/icons";
import type { Entry } from "./entries";

const pauseMs = 200;
const leastLetters = 2;

const stateWords: Record<Alert["state"], string> = {
  PENDING: "pending",
  FIRING: "firing",
  ACKNOWLEDGED: "acknowledged",
  RESOLVED: "resolved",
};

/** Everything that the reader may reach and do, and the alerts that a text finds. */
export function useEntries(text: string): { entries: readonly Entry[]; searching: boolean } {
  const [asked] = useDebouncedValue(text.trim(), pauseMs);
  const searches = asked.length >= leastLetters;
  const alerts = useQuery({ ...findAlerts(asked), enabled: searches, placeholderData: (before) => before });
  const rules = useRules();
  const fixed = useActions(text.trim());
  const navigate = useNavigate();
  const found = searches ? (alerts.data ?? []) : [];
  const entries: Entry[] = [
    ...fixed,
    ...rules,
    ...found.map((alert): Entry => {
      const { first, second } = place(alert);
      const { lead, text: said } = headline(alert);
      return {
        id: `alert ${alert.id}`,
        section: "Alerts",
        label: [first, second].filter(Boolean).join(" · "),
        hint: `${stateWords[alert.state]} · ${[lead, said].filter(Boolean).join(": ")}`,
        icon:
          alert.state === "RESOLVED" ? IconResolved : alert.state === "ACKNOWLEDGED" ? IconAcknowledged : IconFiring,
        found: true,
        run: () =>
          navigate({
            to: "/inbox/$alertId",
            params: { alertId: alert.id },
            search: toSearch({ ...wide(alert.state), q: asked }),
          }),
      };
    }),
  ];
  return { entries, searching: text.trim().length >= leastLetters && (asked !== text.trim() || alerts.isFetching) };
}

function useRules(): Entry[] {
  const navigate = useNavigate();
  const { data: rules = [] } = useQuery({ ...ruleList(), refetchInterval: false });
  const { data: webhooks = [] } = useQuery({ ...webhookList(), refetchInterval: false });
  return [
    ...rules.map(
      (rule): Entry => ({
        id: `rule ${rule.id}`,
        section: "Rules",
        label: rule.name,
        hint: rule.enabled ? "rule" : "rule, disabled",
        icon: IconRules,
        run: () => navigate({ to: "/rules/$ruleId", params: { ruleId: rule.id } }),
      }),
    ),
    ...webhooks.map(
      (webhook): Entry => ({
        id: `webhook ${webhook.id}`,
        section: "Webhooks",
        label: webhook.name,
        hint: webhook.enabled ? "webhook" : "webhook, off",
        icon: IconWebhook,
        run: () => navigate({ to: "/webhooks/$webhookId", params: { webhookId: webhook.id } }),
      }),
    ),
  ];
}

function useActions(text: string): Entry[] {
  const navigate = useNavigate();
  const { data: who } = useQuery(me());
  const { setColorScheme } = useMantineColorScheme();
  const signOut = useSignOut();
  const { alertId } = useParams({ strict: false });
  const { data: alert } = useOpenAlert(alertId);
  const act = useAlertAction(useUndo());
  const reading = useReading();

  const entries: Entry[] = [];
  const add = (section: Entry["section"], label: string, icon: Entry["icon"], run: () => unknown, words = "") =>
    entries.push({ id: `${section} ${label}`, section, label, icon, run, words });

  if (alert) {
    if (isAtLeast(who, "operator")) {
      if (canBecome(alert, "ACKNOWLEDGED")) {
        add("This alert", "Acknowledge this alert", IconAcknowledged, () => act.mutate({ alert, to: "ACKNOWLEDGED" }));
      }
      if (canBecome(alert, "RESOLVED")) {
        add("This alert", "Resolve this alert", IconResolved, () => act.mutate({ alert, to: "RESOLVED" }));
      }
    }
    const mark = alert.unread ? "Mark this alert as read" : "Mark this alert as unread";
    add("This alert", mark, IconInbox, () => reading.mark({ alert, unread: !alert.unread }));
    add("This alert", `Open its rule: ${alert.ruleName || "deleted"}`, IconRules, () =>
      navigate({ to: "/rules/$ruleId", params: { ruleId: alert.ruleId } }),
    );
  }
  const pages = [
    ["Inbox", "/inbox", IconInbox, "alerts firing"],
    ["Rules", "/rules", IconRules, ""],
    ["Webhooks", "/webhooks", IconWebhook, "slack"],
    ["Deliveries", "/deliveries", IconPending, "messages notifications attempts"],
    ["System", "/system", IconHeart, "replicas lag health status"],
    ["Account", "/account", IconPerson, "password me"],
  ] as const;
  for (const [label, to, icon, words] of pages) add("Pages", label, icon, () => navigate({ to }), words);
  if (who?.role === "admin") {
    add("Pages", "Users", IconPerson, () => navigate({ to: "/users" }), "people roles access");
    add("Pages", "Tokens", IconKey, () => navigate({ to: "/tokens" }), "api keys access");
    add("Pages", "Audit log", IconHistory, () => navigate({ to: "/audit" }), "changes history who");
  }
  if (isAtLeast(who, "editor")) {
    add("Actions", "New rule", IconPlus, () => navigate({ to: "/rules/new" }), "create add");
    add("Actions", "New webhook", IconPlus, () => navigate({ to: "/webhooks/new" }), "create add slack");
  }
  add("Actions", "Theme: light", IconLight, () => setColorScheme("light"), "colour bright");
  add("Actions", "Theme: dark", IconDark, () => setColorScheme("dark"), "colour night");
  add("Actions", "Theme: as the system", IconSystem, () => setColorScheme("auto"), "colour auto");
  if (who?.kind === "user") add("Actions", "Sign out", IconSignOut, () => signOut.mutate(), "log out leave");
  if (text !== "") {
    entries.push({
      id: "search",
      section: "Alerts",
      label: `Search the inbox for “${text}”`,
      icon: IconSearch,
      found: true,
      run: () => navigate({ to: "/inbox", search: toSearch({ ...wide("FIRING"), q: text }) }),
    });
  }
  return entries;
}
