import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { findAlerts } from "../../api/alerts";
import type { Alert } from "../../api/client";
import { useMay } from "../../api/operations";
import { ruleNames } from "../../api/rules";
import { webhookList } from "../../api/webhooks";
import { toSearch, wide } from "../../inbox/filter";
import { headline, place } from "../../inbox/headline";
import { useCommandList } from "../../ui/commands";
import { IconAcknowledged, IconFiring, IconResolved, IconRules, IconSearch, IconWebhook } from "../../ui/icons";
import type { Entry } from "./entries";

const pauseMs = 200;
const leastLetters = 2;

const stateWords: Record<Alert["state"], string> = {
  PENDING: "pending",
  FIRING: "firing",
  ACKNOWLEDGED: "acknowledged",
  RESOLVED: "resolved",
};

/** Everything that the reader can reach and do, and the alerts that a text finds. */
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
            search: toSearch({ ...wide(alert.state), q: asked }, "none"),
          }),
      };
    }),
  ];
  return { entries, searching: text.trim().length >= leastLetters && (asked !== text.trim() || alerts.isFetching) };
}

function useRules(): Entry[] {
  const navigate = useNavigate();
  const mayEdit = useMay()("updateWebhook");
  const { data: rules = [] } = useQuery(ruleNames());
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
        hint: webhook.enabled ? "webhook" : "webhook, disabled",
        icon: IconWebhook,
        run: () =>
          mayEdit
            ? navigate({ to: "/webhooks/$webhookId", params: { webhookId: webhook.id } })
            : navigate({ to: "/webhooks", hash: webhook.id }),
      }),
    ),
  ];
}

/** The actions of this page, and the search of the inbox for the text. */
function useActions(text: string): Entry[] {
  const navigate = useNavigate();
  const commands = useCommandList()();
  const entries = commands.flatMap(({ id, section, label, icon, words = "", enabled = true, run }): Entry[] =>
    icon && enabled ? [{ id, section, label, icon, words, run: () => run() }] : [],
  );
  if (text !== "") {
    entries.push({
      id: "search",
      section: "Alerts",
      label: `Search the inbox for “${text}”`,
      icon: IconSearch,
      found: true,
      run: () => navigate({ to: "/inbox", search: toSearch({ ...wide("FIRING"), q: text }, "none") }),
    });
  }
  return entries;
}
