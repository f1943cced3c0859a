import { useMediaQuery } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { Link, Outlet, useRouterState } from "@tanstack/react-router";
import { useState } from "react";
import { isAtLeast, me } from "../api/access";
import { alertCounts } from "../api/alerts";
import { ArrivalProvider } from "../frame/arrival";
import { ExactTip } from "../ui/ExactTip";
import {
  IconHeart,
  IconInbox,
  IconPending,
  IconRoute,
  IconRules,
  IconSettings,
  IconSilence,
  IconWebhook,
} from "../ui/icons";
import { useRemovalFocus } from "../ui/useRemovalFocus";
import { usePrefetch } from "./chunk/prefetch";
import { KeyHelp } from "./KeyHelp";
import { PersonMenu } from "./PersonMenu";
import { PaletteKey } from "./palette/PaletteKey";
import styles from "./Shell.module.css";
import { useAnnouncements } from "./useAnnouncements";
import { useAppCommands } from "./useAppCommands";

/** The settings, each on its own page. */
const settingsPages = ["/users", "/teams", "/tokens", "/audit", "/keys"];

/** Where the bar has no room for all pages; the style sheets know it by the same width. */
const phone = "(max-width: 767px)";

/** The pages that the personal menu has there. */
const moved = ["/silences", "/routing", ...settingsPages];

/** The frame around every page: the rail, which is a bar at the bottom of a phone. */
export function Shell() {
  usePrefetch();
  useRemovalFocus();
  const [help, setHelp] = useState(false);
  useAppCommands(() => setHelp(true));
  const admin = isAtLeast(useQuery(me()).data, "admin");
  const isSettings = useRouterState({ select: ({ location }) => settingsPages.includes(location.pathname) });
  const narrow = useMediaQuery(phone, window.matchMedia(phone).matches);
  const isUnderPerson = useRouterState({
    select: ({ location: { pathname } }) =>
      pathname === "/account" || (narrow && moved.some((page) => pathname === page || pathname.startsWith(`${page}/`))),
  });
  useAnnouncements();
  const isWall = useRouterState({ select: ({ location }) => location.pathname === "/wall" });
  if (isWall) {
    return (
      <main id="main" className={styles.wall} tabIndex={-1}>
        <ArrivalProvider>
          <Outlet />
        </ArrivalProvider>
      </main>
    );
  }
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
        <Link to="/silences" className={`${styles.item} ${styles.settings}`}>
          <IconSilence size={21} stroke={1.7} aria-hidden="true" />
          Silences
        </Link>
        <Link to="/routing" className={`${styles.item} ${styles.settings}`}>
          <IconRoute size={21} stroke={1.7} aria-hidden="true" />
          Routing
        </Link>
        <Link to="/system" className={styles.item}>
          <IconHeart size={21} stroke={1.7} aria-hidden="true" />
          System
        </Link>
        <div className={styles.foot}>
          {admin && (
            <Link
              to="/users"
              className={`${styles.item} ${styles.settings}`}
              {...(isSettings ? { "data-status": "active" } : {})}
            >
              <IconSettings size={21} stroke={1.7} aria-hidden="true" />
              Settings
            </Link>
          )}
          <PersonMenu
            className={styles.item ?? ""}
            narrow={narrow}
            current={isUnderPerson}
            onHelp={() => setHelp(true)}
          />
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

const hiddenPollMs = 30_000;

/** The stream brings the counts. This poll is for when it is down, or when only the title is visible. */
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
