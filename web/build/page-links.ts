import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Plugin } from "vite";

/** The module that each address needs in addition to the application itself, by the paths of the router. */
export const pageModules: Readonly<Record<string, string>> = {
  "/": "src/inbox/InboxPage.tsx",
  "/inbox": "src/inbox/InboxPage.tsx",
  "/inbox/$alertId": "src/inbox/InboxPage.tsx",
  "/wall": "src/inbox/WallPage.tsx",
  "/issue": "src/inbox/IssuePage.tsx",
  "/rules": "src/rules/RulesPage.tsx",
  "/rules/new": "src/rules/NewRulePage.tsx",
  "/rules/$ruleId": "src/rules/RulePage.tsx",
  "/rules/$ruleId/edit": "src/rules/EditRulePage.tsx",
  "/explain": "src/rules/ExplainPage.tsx",
  "/webhooks": "src/webhooks/WebhooksPage.tsx",
  "/webhooks/new": "src/webhooks/NewWebhookPage.tsx",
  "/webhooks/$webhookId": "src/webhooks/EditWebhookPage.tsx",
  "/deliveries": "src/deliveries/DeliveriesPage.tsx",
  "/deliveries/$notificationId": "src/deliveries/DeliveriesPage.tsx",
  "/silences": "src/silences/SilencesPage.tsx",
  "/silences/new": "src/silences/SilenceEditor.tsx",
  "/silences/$silenceId": "src/silences/SilenceEditor.tsx",
  "/routing": "src/routing/RoutingPage.tsx",
  "/system": "src/system/SystemPage.tsx",
  "/account": "src/access/AccountPage.tsx",
  "/users": "src/access/UsersPage.tsx",
  "/teams": "src/access/TeamsPage.tsx",
  "/tokens": "src/access/TokensPage.tsx",
  "/audit": "src/access/AuditPage.tsx",
  "/keys": "src/access/KeysPage.tsx",
};

/**
 * Writes a JSON file with, for the path of each page, the values of the `Link` headers that name
 * its files. The server sends them with the first answer, so that a page's own code arrives
 * together with the application's and not after it.
 */
export function pageLinks(file: string): Plugin {
  return {
    name: "page-links",
    apply: "build",
    writeBundle({ dir = "" }, bundle) {
      const chunks = new Map(
        Object.values(bundle).flatMap((out) => (out.type === "chunk" ? [[out.fileName, out]] : [])),
      );
      const page = readFileSync(join(dir, "index.html"), "utf8");
      const linksOf = (module: string): string[] => {
        const scripts = new Set<string>();
        const styles = new Set<string>();
        const add = (name: string) => {
          const chunk = chunks.get(name);
          // The page itself names this file, so it is already being loaded.
          if (!chunk || scripts.has(name) || page.includes(name)) return;
          scripts.add(name);
          for (const style of chunk.viteMetadata?.importedCss ?? []) if (!page.includes(style)) styles.add(style);
          chunk.imports.forEach(add);
        };
        const entry = [...chunks.values()].find(({ facadeModuleId }) => facadeModuleId?.endsWith(`/${module}`));
        if (!entry) throw new Error(`${module} is in no file of its own`);
        add(entry.fileName);
        return [
          ...[...scripts].map((name) => `</${name}>; rel=modulepreload; crossorigin`),
          ...[...styles].map((name) => `</${name}>; rel=preload; as=style; crossorigin`),
        ];
      };
      const links = Object.fromEntries(Object.entries(pageModules).map(([path, module]) => [path, linksOf(module)]));
      writeFileSync(join(dir, file), `${JSON.stringify(links, null, 2)}\n`);
    },
  };
}
