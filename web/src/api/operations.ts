import { useQuery } from "@tanstack/react-query";
import { isAtLeast, type Me, me, type Role } from "./access";

/** The lowest role for each operation that changes something or is for administrators, as in the API's document. */
export const leastRole = {
  createRule: "editor",
  updateRule: "editor",
  deleteRule: "editor",
  enableRule: "editor",
  disableRule: "editor",
  retryRule: "operator",
  startReplay: "editor",
  cancelReplay: "editor",
  applyRules: "editor",
  duplicateRule: "editor",
  testRule: "editor",
  reconcileRule: "operator",
  createWebhook: "editor",
  updateWebhook: "editor",
  deleteWebhook: "editor",
  enableWebhook: "editor",
  disableWebhook: "editor",
  testWebhook: "editor",
  rotateWebhookSecret: "editor",
  retireWebhookSecret: "editor",
  createSilence: "operator",
  updateSilence: "operator",
  endSilence: "operator",
  updateRoutingPolicy: "editor",
  acknowledgeAlerts: "operator",
  resolveAlerts: "operator",
  undoAlertAction: "operator",
  acknowledgeAlert: "operator",
  resolveAlert: "operator",
  assignAlert: "operator",
  assignAlerts: "operator",
  listAssignees: "operator",
  snoozeAlert: "operator",
  unsnoozeAlert: "operator",
  createIssueNote: "operator",
  createAlertNote: "operator",
  deleteIssueNote: "operator",
  retryNotifications: "operator",
  discardNotification: "operator",
  discardNotifications: "operator",
  retryNotification: "operator",
  updateTeams: "admin",
  listUsers: "admin",
  createUser: "admin",
  getUser: "admin",
  updateUser: "admin",
  deleteUser: "admin",
  setUserPassword: "admin",
  createUserLink: "admin",
  listTokens: "admin",
  createToken: "admin",
  revokeToken: "admin",
  listAudit: "admin",
  listEncryptionKeys: "admin",
} as const satisfies Record<string, Role>;

export type Operation = keyof typeof leastRole;

/** Whether a person may call an operation. Before it is known who that is, the answer is no. */
export const mayCall = (who: Me | undefined, operation: Operation) => isAtLeast(who, leastRole[operation]);

/** Whether the reader may call operations, so that no page offers one that would be refused. */
export function useMay(): (operation: Operation) => boolean {
  const { data: who } = useQuery(me());
  return (operation) => mayCall(who, operation);
}
