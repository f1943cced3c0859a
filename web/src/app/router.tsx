import {
  createRootRoute,
  createRoute,
  createRouter,
  type ErrorComponentProps,
  Link,
  type RouterHistory,
  redirect,
} from "@tanstack/react-router";
import { useEffect } from "react";
import { parseAuditSearch } from "../access/audit";
import { parseSearch as parseDeliverySearch } from "../deliveries/filter";
import { Page } from "../frame/Page";
import { parseSearch } from "../inbox/filter";
import { parseIssueSearch } from "../inbox/issue";
import { parseExplain } from "../rules/explain";
import { parseRulesSearch } from "../rules/list";
import { parseRefinement } from "../rules/refine";
import { parseNewSilence, parseSilences } from "../silences/search";
import { parseAddress, writeAddress } from "../ui/address";
import { IconUnknown } from "../ui/icons";
import { Empty, Failed, SkeletonRows } from "../ui/states";
import * as pages from "./pages";
import { Shell } from "./Shell";

const root = createRootRoute({
  component: Shell,
  // For errors of the frame itself; errors of a page stay within the frame.
  errorComponent: ({ error, reset }) => <Failed error={error} onRetry={reset} />,
  notFoundComponent: NotFound,
});

function NotFound() {
  useEffect(() => {
    document.title = "Not found · Tocsin";
  }, []);
  return (
    <Page title="Not found">
      <Empty icon={IconUnknown} title="Page not found">
        <p>
          <Link to="/inbox">Go to the inbox</Link>
        </p>
      </Empty>
    </Page>
  );
}

function Broken({ error, reset }: ErrorComponentProps) {
  return (
    <Page title="Something went wrong" scrolls>
      <Failed error={error} onRetry={reset} />
    </Page>
  );
}

function Coming() {
  return (
    <Page title="Loading" scrolls>
      <SkeletonRows count={5} height={64} label="Loading the page" />
    </Page>
  );
}

const start = createRoute({
  getParentRoute: () => root,
  path: "/",
  beforeLoad: () => {
    throw redirect({ to: "/inbox", replace: true });
  },
});

const inbox = createRoute({
  getParentRoute: () => root,
  path: "/inbox",
  component: pages.inbox,
  validateSearch: parseSearch,
});
// The page shows the open alert itself, beside the list, so that opening one does not build the page again.
const openAlert = createRoute({ getParentRoute: () => inbox, path: "$alertId", component: () => null });

const issue = createRoute({
  getParentRoute: () => root,
  path: "/issue",
  component: pages.issue,
  validateSearch: parseIssueSearch,
});

const wall = createRoute({ getParentRoute: () => root, path: "/wall", component: pages.wall });

const rules = createRoute({
  getParentRoute: () => root,
  path: "/rules",
  component: pages.rules,
  validateSearch: parseRulesSearch,
});
const newRule = createRoute({
  getParentRoute: () => root,
  path: "/rules/new",
  component: pages.newRule,
  validateSearch: parseRefinement,
});
const rule = createRoute({
  getParentRoute: () => root,
  path: "/rules/$ruleId",
  component: pages.rule,
});
const editRule = createRoute({
  getParentRoute: () => root,
  path: "/rules/$ruleId/edit",
  component: pages.editRule,
  validateSearch: parseRefinement,
});
const explain = createRoute({
  getParentRoute: () => root,
  path: "/explain",
  component: pages.explain,
  validateSearch: parseExplain,
});
const webhooks = createRoute({
  getParentRoute: () => root,
  path: "/webhooks",
  component: pages.webhooks,
});
const newWebhook = createRoute({
  getParentRoute: () => root,
  path: "/webhooks/new",
  component: pages.newWebhook,
});

const editWebhook = createRoute({
  getParentRoute: () => root,
  path: "/webhooks/$webhookId",
  component: pages.editWebhook,
});
const silences = createRoute({
  getParentRoute: () => root,
  path: "/silences",
  component: pages.silences,
  validateSearch: parseSilences,
});
const newSilence = createRoute({
  getParentRoute: () => root,
  path: "/silences/new",
  component: pages.newSilence,
  validateSearch: parseNewSilence,
});
const silence = createRoute({ getParentRoute: () => root, path: "/silences/$silenceId", component: pages.silence });
const routing = createRoute({ getParentRoute: () => root, path: "/routing", component: pages.routing });
const deliveries = createRoute({
  getParentRoute: () => root,
  path: "/deliveries",
  component: pages.deliveries,
  validateSearch: parseDeliverySearch,
});
// As with the inbox, the page shows the open message itself.
const openDelivery = createRoute({ getParentRoute: () => deliveries, path: "$notificationId", component: () => null });
const system = createRoute({
  getParentRoute: () => root,
  path: "/system",
  component: pages.system,
});

const signIn = createRoute({
  getParentRoute: () => root,
  path: "/sign-in",
  beforeLoad: () => {
    throw redirect({ to: "/inbox", replace: true });
  },
});
const account = createRoute({
  getParentRoute: () => root,
  path: "/account",
  component: pages.account,
});
const users = createRoute({
  getParentRoute: () => root,
  path: "/users",
  component: pages.users,
});
const teams = createRoute({
  getParentRoute: () => root,
  path: "/teams",
  component: pages.teams,
});
const tokens = createRoute({
  getParentRoute: () => root,
  path: "/tokens",
  component: pages.tokens,
});
const audit = createRoute({
  getParentRoute: () => root,
  path: "/audit",
  component: pages.audit,
  validateSearch: parseAuditSearch,
});
const keys = createRoute({
  getParentRoute: () => root,
  path: "/keys",
  component: pages.keys,
});

const routeTree = root.addChildren([
  start,
  inbox.addChildren([openAlert]),
  issue,
  wall,
  rules,
  newRule,
  rule,
  editRule,
  explain,
  webhooks,
  newWebhook,
  editWebhook,
  silences,
  newSilence,
  silence,
  routing,
  deliveries.addChildren([openDelivery]),
  system,
  signIn,
  account,
  users,
  teams,
  tokens,
  audit,
  keys,
]);

export function createAppRouter(history?: RouterHistory) {
  return createRouter({
    routeTree,
    parseSearch: parseAddress,
    stringifySearch: writeAddress,
    defaultPreload: "intent",
    defaultErrorComponent: Broken,
    defaultPendingComponent: Coming,
    ...(history ? { history } : {}),
  });
}

declare module "@tanstack/react-router" {
  interface Register {
    router: ReturnType<typeof createAppRouter>;
  }
}
