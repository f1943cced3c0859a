import { useMantineColorScheme } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useSignOut } from "../access/signOut";
import { isAtLeast, me } from "../api/access";
import { useCommands } from "../ui/commands";
import {
  IconDark,
  IconHeart,
  IconHistory,
  IconInbox,
  IconInfo,
  IconKey,
  IconLight,
  IconPending,
  IconPerson,
  IconPlus,
  IconRoute,
  IconRules,
  IconSignOut,
  IconSilence,
  IconSystem,
  IconWebhook,
} from "../ui/icons";
import { singleKeys, useSetting } from "../ui/setting";

const pages = [
  ["Inbox", "/inbox", IconInbox, "alerts firing", "viewer"],
  ["Rules", "/rules", IconRules, "", "viewer"],
  ["Webhooks", "/webhooks", IconWebhook, "slack", "viewer"],
  ["Deliveries", "/deliveries", IconPending, "messages notifications attempts", "viewer"],
  ["Silences", "/silences", IconSilence, "mute maintenance window suppress", "viewer"],
  ["Explain an exchange", "/explain", IconInfo, "why alert missing execution", "viewer"],
  ["Routing", "/routing", IconRoute, "policy route receivers who", "viewer"],
  ["Wall", "/wall", IconSystem, "screen display tv monitor", "viewer"],
  ["System", "/system", IconHeart, "replicas lag health status", "viewer"],
  ["Account", "/account", IconPerson, "password me theme", "viewer"],
  ["Users", "/users", IconPerson, "people roles access", "admin"],
  ["Teams", "/teams", IconPerson, "people groups owners mine", "viewer"],
  ["Tokens", "/tokens", IconKey, "api keys access", "admin"],
  ["Audit log", "/audit", IconHistory, "changes history who", "admin"],
  ["Encryption keys", "/keys", IconKey, "secrets rotation", "admin"],
] as const;

/** The commands of every page. */
export function useAppCommands(onHelp: () => void): void {
  const navigate = useNavigate();
  const { data: who } = useQuery(me());
  const { setColorScheme } = useMantineColorScheme();
  const signOut = useSignOut();
  const keys = useSetting(singleKeys);
  const section = "Actions" as const;
  useCommands([
    ...pages.map(([label, to, icon, words, role]) => ({
      id: to,
      section: "Pages" as const,
      label,
      icon,
      words,
      enabled: role === "viewer" || isAtLeast(who, role),
      run: () => navigate({ to }),
    })),
    {
      id: "newRule",
      section,
      label: "New rule",
      icon: IconPlus,
      words: "create add",
      enabled: isAtLeast(who, "editor"),
      run: () => navigate({ to: "/rules/new" }),
    },
    {
      id: "newWebhook",
      section,
      label: "New webhook",
      icon: IconPlus,
      words: "create add slack",
      enabled: isAtLeast(who, "editor"),
      run: () => navigate({ to: "/webhooks/new" }),
    },
    {
      id: "newSilence",
      section,
      label: "New silence",
      icon: IconPlus,
      words: "create add mute maintenance",
      enabled: isAtLeast(who, "operator"),
      run: () => navigate({ to: "/silences/new" }),
    },
    {
      id: "light",
      section,
      label: "Theme: light",
      icon: IconLight,
      words: "colour bright",
      run: () => setColorScheme("light"),
    },
    {
      id: "dark",
      section,
      label: "Theme: dark",
      icon: IconDark,
      words: "colour night",
      run: () => setColorScheme("dark"),
    },
    {
      id: "auto",
      section,
      label: "Theme: same as system",
      icon: IconSystem,
      words: "colour auto",
      run: () => setColorScheme("auto"),
    },
    {
      id: "help",
      section,
      label: "Show keyboard shortcuts",
      icon: IconInfo,
      words: "keys help",
      keys: ["?"],
      run: onHelp,
    },
    {
      id: "singleKeys",
      section,
      label: keys === "on" ? "Turn off single-key shortcuts" : "Turn on single-key shortcuts",
      icon: IconInfo,
      words: "keys keyboard accessibility",
      run: () => singleKeys.set(keys === "on" ? "off" : "on"),
    },
    {
      id: "signOut",
      section,
      label: "Sign out",
      icon: IconSignOut,
      words: "log out leave",
      enabled: who?.kind === "user",
      run: () => signOut.mutate(),
    },
  ]);
}
