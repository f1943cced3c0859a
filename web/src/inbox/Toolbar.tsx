import { Link } from "@tanstack/react-router";
import type { AlertFilter } from "../api/alerts";
import type { AlertState } from "../api/client";
import { Button, Key } from "../ui/Button";
import { IconAcknowledged, IconBookmark, IconClose, IconPerson, IconResolved } from "../ui/icons";
import { Select } from "../ui/Select";
import { number, plural } from "../ui/words";
import type { Action } from "./actions";
import { chips } from "./chips";
import { type Folding, toSearch } from "./filter";
import { folds } from "./fold";
import type { Selection } from "./selection";
import styles from "./Toolbar.module.css";

interface Props {
  filter: AlertFilter;
  fold: Folding;
  onFilter: (filter: AlertFilter, fold: Folding) => void;
  selection: Selection;
  /** How many alerts are selected; undefined while they are being counted. */
  count: number | undefined;
  onAll: (all: boolean) => void;
  onAct: (to: Action["to"]) => void;
  /** Assigns the selection to the reader, or asks for an assignee; undefined if that is not possible. */
  onTake: (() => void) | undefined;
  onAssign: (() => void) | undefined;
  onRead: () => void;
  onViews: () => void;
  busy: boolean;
  /** Whether there is anything to select. */
  empty: boolean;
  /** Whether the reader's role may act on alerts. */
  may: boolean;
}

/** Above the list: the filters and folds and, once rows are selected, the actions on them. */
export function Toolbar(props: Props) {
  const { filter, fold, onFilter, onViews, selection, onAll, empty } = props;
  const some = selection.all || selection.ids.size > 0;
  return (
    <div className={styles.bar}>
      <label className={styles.check}>
        <input
          type="checkbox"
          aria-label="Select all matching alerts"
          disabled={empty && !some}
          checked={selection.all}
          ref={(box) => {
            if (box) box.indeterminate = some && !selection.all;
          }}
          onChange={() => onAll(!some)}
        />
      </label>
      {some ? (
        <Chosen {...props} />
      ) : (
        <>
          <Toggle
            word="Mine"
            title="Only alerts that are assigned to you, or whose rules target you or are owned by your teams"
            on={filter.mine}
            onChange={(mine) => onFilter({ ...filter, mine }, fold)}
          />
          <Toggle
            word="Unread"
            title="Only unread alerts"
            on={filter.unread}
            onChange={(unread) => onFilter({ ...filter, unread }, fold)}
          />
          {chips(filter).map(({ part, text, empty }) => (
            <Link
              key={part}
              to="/inbox"
              search={toSearch({ ...filter, ...empty }, fold)}
              className={styles.chip}
              title={text}
            >
              <span>{text}</span>
              <IconClose size={13} aria-label="Remove filter" />
            </Link>
          ))}
          <span className={styles.grow} />
          <Button look="quiet" onClick={onViews}>
            <IconBookmark size={15} aria-hidden="true" />
            <span className={styles.views}>Views</span>
          </Button>
          <Select
            bare
            label="Group alerts"
            options={folds}
            value={fold}
            onChange={(value) => onFilter(filter, value)}
          />
        </>
      )}
    </div>
  );
}

function Chosen({ filter, selection, count, onAll, onAct, onTake, onAssign, onRead, busy, may }: Props) {
  const what =
    count === undefined ? (
      "…"
    ) : (
      <>
        {number(count)}
        <span className={styles.noun}> {plural(count, "alert", "alerts")}</span>
      </>
    );
  const off = count === undefined || count === 0;
  return (
    <>
      <span className={styles.count} role="status">
        {count === undefined ? "Counting…" : `${number(count)} selected`}
      </span>
      <Button
        look="quiet"
        iconOnly
        aria-label="Clear selection"
        title="Clear selection (Esc)"
        onClick={() => onAll(false)}
      >
        <IconClose size={16} aria-hidden="true" />
      </Button>
      <span className={styles.break} />
      {may && canAll(filter.state, "ACKNOWLEDGED") && (
        <Button look="primary" disabled={off} busy={busy} onClick={() => onAct("ACKNOWLEDGED")}>
          <IconAcknowledged size={16} aria-hidden="true" />
          Acknowledge {what} <Key>A</Key>
        </Button>
      )}
      {may && canAll(filter.state, "RESOLVED") && (
        <Button disabled={off} busy={busy} onClick={() => onAct("RESOLVED")}>
          <IconResolved size={16} aria-hidden="true" />
          Resolve {what} <Key>R</Key>
        </Button>
      )}
      {onTake && (
        <Button busy={busy} onClick={onTake}>
          <IconPerson size={16} aria-hidden="true" />
          Assign to me <Key>M</Key>
        </Button>
      )}
      {onAssign && (
        <Button look="quiet" busy={busy} onClick={onAssign}>
          Assign…
        </Button>
      )}
      <Button look="quiet" busy={busy} onClick={onRead}>
        Mark as read
      </Button>
      {!selection.all && (
        <Button look="quiet" busy={busy} onClick={() => onAll(true)}>
          Select all matching
        </Button>
      )}
    </>
  );
}

/** Whether alerts in a state can be moved to another one. */
export function canAll(from: AlertState, to: Action["to"]): boolean {
  return from === "FIRING" || (from === "ACKNOWLEDGED" && to === "RESOLVED");
}

interface ToggleProps {
  word: string;
  title: string;
  on: boolean;
  onChange: (on: boolean) => void;
}

function Toggle({ word, title, on, onChange }: ToggleProps) {
  return (
    <button type="button" className={styles.toggle} aria-pressed={on} title={title} onClick={() => onChange(!on)}>
      {word}
    </button>
  );
}
