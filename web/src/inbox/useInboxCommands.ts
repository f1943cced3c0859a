import type { Icon } from "@tabler/icons-react";
import { useNavigate } from "@tanstack/react-router";
import type { Alert } from "../api/client";
import { useCommands } from "../ui/commands";
import { IconAcknowledged, IconInbox, IconPerson, IconReopened, IconResolved, IconRules } from "../ui/icons";
import { alertsWord } from "../ui/words";
import type { Action } from "./actions";
import { reopenWord } from "./reopen";

interface Options {
  /** The open alert, or the one under the cursor. */
  alert: Alert | undefined;
  /** Whether an alert is open: the palette only offers what it can see. */
  open: boolean;
  /** How many alerts are selected; 0 for none. */
  selected: number;
  /**
   * Applies the action to the selection, or to the open alert or the one under the cursor;
   * undefined if that is not possible.
   */
  act: (to: Action["to"]) => (() => void) | undefined;
  /** Reopens the open alert or the one under the cursor; undefined if that is not possible. */
  reopen: (() => void) | undefined;
  /**
   * Assigns the selection, or the alert under the cursor, to the reader, or asks for an assignee;
   * undefined if that is not possible.
   */
  take: (() => void) | undefined;
  assign: (() => void) | undefined;
  move: (by: 1 | -1, extend: boolean, event?: KeyboardEvent) => unknown;
  toggle: (range: boolean) => unknown;
  openRow: () => unknown;
  close: () => unknown;
  mark: (alert: Alert) => void;
  search: () => void;
}

/** The commands of keys and palette in the inbox. */
export function useInboxCommands({ alert, open, selected, act, reopen, take, assign, ...list }: Options): void {
  const navigate = useNavigate();
  const which = selected > 0 ? alertsWord(selected) : "this alert";
  const acknowledge = act("ACKNOWLEDGED");
  const resolve = act("RESOLVED");
  const offered = (icon: Icon) => (open || selected > 0 ? { icon } : {});
  const section = "Inbox" as const;
  useCommands([
    {
      id: "acknowledge",
      section: "This alert",
      label: `Acknowledge ${which}`,
      ...offered(IconAcknowledged),
      keys: ["a"],
      enabled: acknowledge !== undefined,
      run: () => acknowledge?.(),
    },
    {
      id: "resolve",
      section: "This alert",
      label: `Resolve ${which}`,
      ...offered(IconResolved),
      keys: ["r"],
      enabled: resolve !== undefined,
      run: () => resolve?.(),
    },
    {
      id: "reopen",
      section: "This alert",
      label: alert && (alert.reopenable?.alerts ?? 1) > 1 ? reopenWord(alert) : "Reopen this alert",
      ...offered(IconReopened),
      words: "undo unacknowledge unresolve fire again",
      keys: ["o"],
      enabled: reopen !== undefined,
      run: () => reopen?.(),
    },
    {
      id: "take",
      section: "This alert",
      label: `Assign ${which} to me`,
      ...offered(IconPerson),
      keys: ["m"],
      enabled: take !== undefined,
      run: () => take?.(),
    },
    {
      id: "assignTo",
      section: "This alert",
      label: `Assign ${which} to someone`,
      ...offered(IconPerson),
      words: "hand over unassign",
      keys: ["shift+m"],
      enabled: assign !== undefined,
      run: () => assign?.(),
    },
    {
      id: "mark",
      section: "This alert",
      label: alert?.unread ? "Mark this alert as read" : "Mark this alert as unread",
      ...offered(IconInbox),
      keys: ["u"],
      enabled: alert !== undefined,
      run: () => alert && list.mark(alert),
    },
    {
      id: "rule",
      section: "This alert",
      label: `Open rule: ${alert?.ruleName || "deleted"}`,
      ...offered(IconRules),
      enabled: alert !== undefined,
      run: () => alert && navigate({ to: "/rules/$ruleId", params: { ruleId: alert.ruleId } }),
    },
    { id: "down", section, label: "Move down", keys: ["j", "arrowdown"], run: (event) => list.move(1, false, event) },
    { id: "up", section, label: "Move up", keys: ["k", "arrowup"], run: (event) => list.move(-1, false, event) },
    { id: "open", section, label: "Open alert or expand group", keys: ["enter"], run: list.openRow },
    { id: "close", section, label: "Clear selection or close alert", keys: ["escape"], run: list.close },
    { id: "select", section, label: "Select row", keys: ["x"], run: () => list.toggle(false) },
    {
      id: "selectTo",
      section,
      label: "Select all rows up to this one",
      keys: ["shift+x"],
      run: () => list.toggle(true),
    },
    {
      id: "extendDown",
      section,
      label: "Extend selection down",
      keys: ["shift+j", "shift+arrowdown"],
      run: (event) => list.move(1, true, event),
    },
    {
      id: "extendUp",
      section,
      label: "Extend selection up",
      keys: ["shift+k", "shift+arrowup"],
      run: (event) => list.move(-1, true, event),
    },
    { id: "search", section, label: "Search", keys: ["/"], run: () => list.search() },
  ]);
}
