import { useMantineColorScheme } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link, Outlet } from "@tanstack/react-router";
import { useState } from "react";
import { useSignOut } from "../access/signOut";
import { me } from "../api/access";
import { alertCounts } from "../api/alerts";
import { ArrivalProvider } from "../frame/arrival";
import { ExactTip } from "../ui/ExactTip";
import {
  IconDark,
  IconHeart,
  IconInbox,
  IconLight,
  IconPending,
  IconPerson,
  IconRules,
  IconSignOut,
  IconSystem,
  IconWebhook,
} from "../ui/icons";
import { schemes, schemeWords } from "../ui/theme";
import { usePrefetch } from "./chunk/prefetch";
import { KeyHelp } from "./KeyHelp";
import { PaletteKey } from "./palette/PaletteKey";
import styles from "./Shell.module.css";
import { useAppCommands } from "./useAppCommands";

/** The frame around every page: the rail, which becomes a bar at the foot of a phone. */
export function Shell() {
  usePrefetch();
  const [help, setHelp] = useState(false);
  useAppCommands(() => setHelp(true));
  return (
    <div className={styles.shell}>
      <a className={styles.skip} href="#main">
        Skip to content
      </a>
      <nav className={styles.rail} aria-label="Tocsin">
        <div className={styles.brand}>
          <img src="/favicon.svg" width={28} height={28} alt="Tocsin" />
        </div>
        <PaletteKey className={styles.item} />
        <Link to="/inbox" className={styles.item}>
          <IconInbox size={21} stroke={1.7} aria-hidden="true" />
          Inbox
          <FiringBadge />
        </Link>
        <Link to="/rules" className={styles.item}>
          <IconRules size={21} stroke={1.7} aria-hidden="true" />
          Rules
        </Link>
        <Link to="/webhooks" className={styles.item}>
          <IconWebhook size={21} stroke={1.7} aria-hidden="true" />
          Webhooks
        </Link>
        <Link to="/deliveries" className={styles.item}>
          <IconPending size={21} stroke={1.7} aria-hidden="true" />
          Deliveries
        </Link>
        <Link to="/system" className={styles.item}>
          <IconHeart size={21} stroke={1.7} aria-hidden="true" />
          System
        </Link>
        <div className={styles.foot}>
          <Person />
          <ThemeButton />
        </div>
      </nav>
      <main id="main" className={styles.main} tabIndex={-1}>
        <ArrivalProvider>
          <Outlet />
        </ArrivalProvider>
      </main>
      <ExactTip />
      {help && <KeyHelp onClose={() => setHelp(false)} />}
    </div>
  );
}

/** Who one is, and the way out. */
function Person() {
  const { data: who } = useQuery(me());
  const signOut = useSignOut();
  return (
    <>
      <Link to="/account" className={styles.item} title={who?.email ?? who?.name}>
        <IconPerson size={20} stroke={1.7} aria-hidden="true" />
        <span className={styles.person}>{who ? shortName(who.name) : "Account"}</span>
      </Link>
      {who?.kind === "user" && (
        <button
          type="button"
          className={`${styles.item} ${styles.out}`}
          disabled={signOut.isPending}
          onClick={() => signOut.mutate()}
        >
          <IconSignOut size={20} stroke={1.7} aria-hidden="true" />
          Sign out
        </button>
      )}
    </>
  );
}

/** A name for little room: of an e-mail address, what stands before the @. */
function shortName(name: string): string {
  return name.split("@")[0] || name;
}

const hiddenPollMs = 30_000;

/** The stream brings the counts; this poll is for when it is down, or nobody looks and only the title shows. */
function FiringBadge() {
  const { data } = useQuery({ ...alertCounts(), refetchInterval: hiddenPollMs, refetchIntervalInBackground: true });
  const firing = data?.firing ?? 0;
  if (firing === 0) return null;
  return (
    <span className={styles.badge}>
      {firing > 999 ? "999+" : firing}
      <span className="visually-hidden"> firing</span>
    </span>
  );
}

const themeIcons = { auto: IconSystem, light: IconLight, dark: IconDark } as const;

function ThemeButton() {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const Icon = themeIcons[colorScheme];
  const word = schemeWords[colorScheme];
  const next = schemes[(schemes.indexOf(colorScheme) + 1) % schemes.length] ?? "auto";
  return (
    <button
      type="button"
      className={`${styles.item} ${styles.theme}`}
      title={`Theme: ${word}. Change to: ${schemeWords[next]}.`}
      onClick={() => setColorScheme(next)}
    >
      <Icon size={20} stroke={1.7} aria-hidden="true" />
      Theme
      <span className="visually-hidden">
        {" "}
        is {word}; change to {schemeWords[next]}
      </span>
    </button>
  );
}
