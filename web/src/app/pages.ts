import { ruleOne, ruleShown } from "../api/rules";
import { oneWebhook, webhookList } from "../api/webhooks";
import { SkeletonColumns, SkeletonForm } from "../ui/states";
import { lazyPage } from "./chunk/lazyPage";

/** How long the answer to an early request waits for its page. */
const untilShownMs = 5_000;

export const inbox = lazyPage("Inbox", async () => (await import("../inbox/InboxPage")).InboxPage, {
  titleHidden: true,
});
export const issue = lazyPage("Issue", async () => (await import("../inbox/IssuePage")).IssuePage);
export const wall = lazyPage("Wall", async () => (await import("../inbox/WallPage")).WallPage);
export const rules = lazyPage("Rules", async () => (await import("../rules/RulesPage")).RulesPage);
export const newRule = lazyPage("New rule", async () => (await import("../rules/NewRulePage")).NewRulePage, {
  Coming: SkeletonColumns,
});
export const rule = lazyPage("Rule", async () => (await import("../rules/RulePage")).RulePage, {
  ask: (cache, { ruleId = "" }) => cache.prefetchQuery(ruleShown(ruleId)),
});
export const editRule = lazyPage("Rule", async () => (await import("../rules/EditRulePage")).EditRulePage, {
  Coming: SkeletonColumns,
  ask: (cache, { ruleId = "" }) => cache.prefetchQuery({ ...ruleOne(ruleId), gcTime: untilShownMs }),
});
export const explain = lazyPage("Explain", async () => (await import("../rules/ExplainPage")).ExplainPage);
export const webhooks = lazyPage("Webhooks", async () => (await import("../webhooks/WebhooksPage")).WebhooksPage, {
  ask: (cache) => cache.prefetchQuery(webhookList()),
});
export const newWebhook = lazyPage(
  "New webhook",
  async () => (await import("../webhooks/NewWebhookPage")).NewWebhookPage,
  { Coming: SkeletonForm },
);
export const editWebhook = lazyPage(
  "Webhook",
  async () => (await import("../webhooks/EditWebhookPage")).EditWebhookPage,
  { Coming: SkeletonForm, ask: (cache, { webhookId = "" }) => cache.prefetchQuery(oneWebhook(webhookId)) },
);
export const deliveries = lazyPage(
  "Deliveries",
  async () => (await import("../deliveries/DeliveriesPage")).DeliveriesPage,
);
export const silences = lazyPage("Silences", async () => (await import("../silences/SilencesPage")).SilencesPage);
export const newSilence = lazyPage(
  "New silence",
  async () => (await import("../silences/SilenceEditor")).NewSilencePage,
  { Coming: SkeletonColumns },
);
export const silence = lazyPage("Silence", async () => (await import("../silences/SilenceEditor")).EditSilencePage, {
  Coming: SkeletonColumns,
});
export const routing = lazyPage("Routing", async () => (await import("../routing/RoutingPage")).RoutingPage, {
  Coming: SkeletonColumns,
});
export const system = lazyPage("System", async () => (await import("../system/SystemPage")).SystemPage);
export const account = lazyPage("Account", async () => (await import("../access/AccountPage")).AccountPage, {
  Coming: SkeletonForm,
});
export const users = lazyPage("Users", async () => (await import("../access/UsersPage")).UsersPage);
export const teams = lazyPage("Teams", async () => (await import("../access/TeamsPage")).TeamsPage);
export const tokens = lazyPage("Tokens", async () => (await import("../access/TokensPage")).TokensPage);
export const audit = lazyPage("Audit log", async () => (await import("../access/AuditPage")).AuditPage);
export const keys = lazyPage("Encryption keys", async () => (await import("../access/KeysPage")).KeysPage);
