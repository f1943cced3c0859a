import type { Icon } from "@tabler/icons-react";
import type { ReactNode } from "react";
import { ApiError, explain } from "../api/errors";
import columns from "./columns.module.css";
import form from "./form.module.css";
import { IconLock, IconOffline, IconUnknown } from "./icons";
import styles from "./states.module.css";
import { TryAgain } from "./TryAgain";

/** There is nothing here, and that is right, or the reader learns what to do next. */
export function Empty({ icon: Icon, title, children }: { icon: Icon; title: string; children?: ReactNode }) {
  return (
    <div className={styles.state}>
      <Icon size={28} stroke={1.5} aria-hidden="true" />
      <h2>{title}</h2>
      {children}
    </div>
  );
}

interface FailedProps {
  error: unknown;
  /** Tries again; if it returns a promise, the try ends with it. */
  onRetry?: () => unknown;
  /** The text of its button. */
  again?: string;
  /** A link to somewhere else. */
  children?: ReactNode;
}

/** Something could not be shown: what happened, and the remedy. */
export function Failed({ error, onRetry, again = "Try again", children }: FailedProps) {
  // What does not exist will not exist at the next try either.
  const helps = !(error instanceof ApiError) || (error.status !== 404 && error.status !== 400);
  const Icon = helps ? IconOffline : IconUnknown;
  const { what, remedy } = explain(error);
  return (
    <div className={`${styles.state} ${styles.failed}`} role="alert">
      <Icon size={28} stroke={1.5} aria-hidden="true" />
      <h2>{what}</h2>
      {remedy && <p>{remedy}</p>}
      {children}
      {onRetry && helps && (
        <div className={styles.actions}>
          <TryAgain onRetry={onRetry}>{again}</TryAgain>
        </div>
      )}
    </div>
  );
}

/** The reader's role does not allow this: who may, and the remedy. */
export function Forbidden({ role, least }: { role: string; least: string }) {
  return (
    <Empty icon={IconLock} title={`This page is for ${least}`}>
      <p>Your role is {role}. Ask an administrator for access.</p>
    </Empty>
  );
}

/** A form that is being loaded: fields in a column, in the place of the real ones. */
export function SkeletonForm({ label }: { label: string }) {
  return (
    <div className={form.form} role="status" aria-label={label}>
      <Fields count={7} />
    </div>
  );
}

/** The editor on one side and its effects on the other, in the layout of {@link columns}. */
export function SkeletonColumns({ label }: { label: string }) {
  return (
    <div className={columns.page} role="status" aria-label={label}>
      <div className={styles.skeletonLine}>
        <div className={styles.bar} style={{ width: "45%" }} />
      </div>
      <div className={columns.columns}>
        <div className={form.form}>
          <Fields count={7} />
        </div>
        <div className={`${columns.aside} ${styles.skeletonAside}`}>
          <Fields count={5} />
        </div>
      </div>
    </div>
  );
}

function Fields({ count }: { count: number }) {
  return Array.from({ length: count }, (_, index) => index).map((index) => (
    <div key={index} className={styles.skeletonField}>
      <div className={styles.bar} style={{ width: `${18 + ((index * 23) % 20)}%` }} />
      <div className={`${styles.bar} ${styles.box}`} />
    </div>
  ));
}

interface SkeletonProps {
  count: number;
  height: number;
  label: string;
  /** Whether there is a table header above them. */
  headed?: boolean;
}

/** Rows that are being loaded, with the height of the real ones, so that nothing jumps. */
export function SkeletonRows({ count, height, label, headed = false }: SkeletonProps) {
  return (
    <div className={styles.skeleton} role="status" aria-label={label}>
      {headed && <div className={`${styles.skeletonRow} ${styles.skeletonHead}`} />}
      {Array.from({ length: count }, (_, index) => index).map((index) => (
        <div key={index} className={styles.skeletonRow} style={{ height }}>
          <div className={styles.bar} style={{ width: `${35 + ((index * 37) % 50)}%` }} />
          {height > 44 && <div className={styles.bar} style={{ width: `${20 + ((index * 23) % 40)}%` }} />}
        </div>
      ))}
    </div>
  );
}
