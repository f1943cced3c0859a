import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useEffect } from "react";
import { me } from "../api/access";
import { Page } from "../frame/Page";
import { Forbidden } from "../ui/states";
import styles from "./access.module.css";

interface Props {
  title: string;
  actions?: ReactNode;
  /** Whether the page is only for administrators. */
  admin?: boolean;
  /** Whether the page is one of the settings, which have tabs for administrators. */
  settings?: boolean;
  children: ReactNode;
}

/** The frame of the pages on people and programs: the reader's own account and, for administrators, all accounts. */
export function AccessPage({ title, actions, admin = false, settings = admin, children }: Props) {
  const { data: who } = useQuery(me());
  useEffect(() => {
    document.title = `${title} · Tocsin`;
  }, [title]);
  const isAdmin = who?.role === "admin";
  // A person who opens an administrators' page is most likely an administrator: the tabs are shown
  // before that is known.
  const tabs = (settings && isAdmin) || (admin && who === undefined);
  const forbidden = admin && who !== undefined && !isAdmin;
  return (
    <Page
      title={title}
      scrolls
      actions={forbidden ? undefined : actions}
      header={
        tabs && (
          <nav className={styles.tabs} aria-label="Settings">
            {(
              [
                ["/users", "Users"],
                ["/teams", "Teams"],
                ["/tokens", "Tokens"],
                ["/audit", "Audit log"],
                ["/keys", "Keys"],
              ] as const
            ).map(([to, word]) => (
              <Link key={to} to={to} className={styles.tab}>
                {word}
              </Link>
            ))}
          </nav>
        )
      }
    >
      {forbidden ? <Forbidden role={who.role} least="administrators" /> : children}
    </Page>
  );
}
