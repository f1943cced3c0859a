import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useEffect, useId, useRef, useState } from "react";
import { useSignOut } from "../access/signOut";
import { isAtLeast, me } from "../api/access";
import { Button } from "../ui/Button";
import { IconPerson } from "../ui/icons";
import { Preferences } from "../ui/Preferences";
import styles from "./PersonMenu.module.css";

/** A short name: the part of an e-mail address before the @. */
function shortName(name: string): string {
  return name.split("@")[0] || name;
}

interface Props {
  className: string;
  /** Whether the menu also leads to the pages for which a phone's bar has no room. */
  narrow: boolean;
  /** Whether the open page is one of those that the menu leads to. */
  current: boolean;
  onHelp: () => void;
}

/** Who the reader is, how pages are shown, and signing out. */
export function PersonMenu({ className, narrow, current, onHelp }: Props) {
  const { data: who } = useQuery(me());
  const signOut = useSignOut();
  const [open, setOpen] = useState(false);
  const frame = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const id = useId();
  useEffect(() => {
    if (!open) return;
    const leave = ({ target }: Event) => {
      if (target instanceof Node && !frame.current?.contains(target)) setOpen(false);
    };
    // The key must not close anything else on the page.
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== "Escape") return;
      event.stopImmediatePropagation();
      setOpen(false);
      button.current?.focus();
    };
    document.addEventListener("pointerdown", leave);
    document.addEventListener("focusin", leave);
    document.addEventListener("keydown", onKey, true);
    return () => {
      document.removeEventListener("pointerdown", leave);
      document.removeEventListener("focusin", leave);
      document.removeEventListener("keydown", onKey, true);
    };
  }, [open]);
  return (
    <div ref={frame} className={styles.frame}>
      <button
        ref={button}
        type="button"
        className={`${className} ${styles.button}`}
        title={who?.email ?? who?.name}
        aria-current={current || undefined}
        data-status={current ? "active" : undefined}
        aria-expanded={open}
        aria-controls={open ? id : undefined}
        onClick={() => setOpen(!open)}
      >
        <IconPerson size={20} stroke={1.7} aria-hidden="true" />
        <span className={styles.name}>{narrow ? "More" : who ? shortName(who.name) : "Account"}</span>
      </button>
      {open && (
        <div id={id} className={styles.menu} data-takes-keys="">
          {who && (
            <p className={styles.who}>
              <b>{who.name}</b>
              {who.email && who.email !== who.name && <span>{who.email}</span>}
            </p>
          )}
          <Link to="/account" className={styles.link} onClick={() => setOpen(false)}>
            Account
          </Link>
          <Link to="/silences" className={`${styles.link} ${styles.settings}`} onClick={() => setOpen(false)}>
            Silences
          </Link>
          <Link to="/routing" className={`${styles.link} ${styles.settings}`} onClick={() => setOpen(false)}>
            Routing
          </Link>
          {isAtLeast(who, "admin") && (
            <Link to="/users" className={`${styles.link} ${styles.settings}`} onClick={() => setOpen(false)}>
              Settings: users, teams, tokens, audit log
            </Link>
          )}
          <Preferences />
          <Button
            look="quiet"
            onClick={() => {
              setOpen(false);
              onHelp();
            }}
          >
            Keyboard shortcuts
          </Button>
          {who?.kind === "user" && (
            <Button busy={signOut.isPending} onClick={() => signOut.mutate()}>
              Sign out
            </Button>
          )}
        </div>
      )}
    </div>
  );
}
