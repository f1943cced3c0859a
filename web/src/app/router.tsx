import {
  createRootRoute,
  createRoute,
  createRouter,
  Link,
  lazyRouteComponent,
  type RouterHistory,
  redirect,
} from "@tanstack/react-router";
import { parseSearch as parseDeliverySearch } from "../deliveries/filter";
import { parseSearch } from "../inbox/filter";
import { InboxPage } from "../inbox/InboxPage";
import { IconUnknown } from "../ui/icons";
import { Empty, Failed } from "../ui/states";
import { Page } from "./Page";
import { Shell } from "./Shell";
import { parseAddress, writeAddress } from "./search";

const root = createRootRoute({
  component: Shell,
  errorComponent: ({ error, reset }) => <Failed error={error} onRetry={reset} />,
  notFoundComponent: NotFound,
});

function NotFound() {
  return (
    <Page title="Not found">
      <Empty icon={IconUnknown} title="There is no page at this address">
        <p>
          <Link to="/inbox">Go to the inbox</Link>
        </p>
      </Empty>
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
  component: InboxPage,
  validateSearch: parseSearch,
});
// The page shows the open alert itself, beside the list, so that opening one does not build the page anew.
const openAlert = createRoute({ getParentRoute: () => inbox, path: "$alertId", component: () => null });

const rules = createRoute({
  getParentRoute: () => root,
  path: "/rules",
  component: lazyRouteComponent(() => import("../rules/RulesPage"), "RulesPage"),
});
const newRule = createRoute({
  getParentRoute: () => root,
  path: "/rules/new",
  component: lazyRouteComponent(() => import("../rules/NewRulePage"), "NewRulePage"),
});
const editRule = createRoute({
  getParentRoute: () => root,
  path: "/rules/$ruleId",
  component: lazyRouteComponent(() => import("../rules/EditRulePage"), "EditRulePage"),
});
const webhooks = createRoute({
  getParentRoute: () => root,
  path: "/webhooks",
  component: lazyRouteComponent(() => import("../webhooks/WebhooksPage"), "WebhooksPage"),
});
const newWebhook = createRoute({
  getParentRoute: () => root,
  path: "/webhooks/new",
  component: lazyRouteComponent(() => import("../webhooks/NewWebhookPage"), "NewWebhookPage"),
});

const editWebhook = createRoute({
  getParentRoute: () => root,
  path: "/webhooks/$webhookId",
  component: lazyRouteComponent(() => import("../webhooks/EditWebhookPage"), "EditWebhookPage"),
});
const deliveries = createRoute({
  getParentRoute: () => root,
  path: "/deliveries",
  component: lazyRouteComponent(() => import("../deliveries/DeliveriesPage"), "DeliveriesPage"),
  validateSearch: parseDeliverySearch,
});
// As with the inbox, the page shows the open message itself.
const openDelivery = createRoute({ getParentRoute: () => deliveries, path: "$notificationId", component: () => null });
const system = createRoute({
  getParentRoute: () => root,
  path: "/system",
  component: lazyRouteComponent(() => import("../system/SystemPage"), "SystemPage"),
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
  component: lazyRouteComponent(() => import("../access/AccountPage"), "AccountPage"),
});
const users = createRoute({
  getParentRoute: () => root,
  path: "/users",
  component: lazyRouteComponent(() => import("../access/UsersPage"), "UsersPage"),
});
const tokens = createRoute({
  getParentRoute: () => root,
  path: "/tokens",
  component: lazyRouteComponent(() => import("../access/TokensPage"), "TokensPage"),
});
const audit = createRoute({
  getParentRoute: () => root,
  path: "/audit",
  component: lazyRouteComponent(() => import("../access/AuditPage"), "AuditPage"),
});

const routeTree = root.addChildren([
  start,
  inbox.addChildren([openAlert]),
  rules,
  newRule,
  editRule,
  webhooks,
  newWebhook,
  editWebhook,
  deliveries.addChildren([openDelivery]),
  system,
  signIn,
  account,
  users,
  tokens,
  audit,
]);

export function createAppRouter(history?: RouterHistory) {
  return createRouter({
    routeTree,
    parseSearch: parseAddress,
    stringifySearch: writeAddress,
    defaultPreload: "intent",
    ...(history ? { history } : {}),
  });
}

declare module "@tanstack/react-router" {
  interface Register {
    router: ReturnType<typeof createAppRouter>;
  }
}
