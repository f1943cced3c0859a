import { Button } from "../ui/Button";
import dialogStyles from "../ui/ConfirmDialog.module.css";
import { useModal } from "../ui/useModal";
import styles from "./InboxPage.module.css";

const keys: readonly (readonly [keys: readonly string[], does: string])[] = [
  [["j", "k"], "Move down and up"],
  [["Enter"], "Open the alert, or fold a group out and in"],
  [["Esc"], "Close the alert, or select nothing"],
  [["x"], "Select the row, or leave it out"],
  [["Shift x"], "Select all rows up to here"],
  [["Shift j", "Shift k"], "Select while moving"],
  [["a"], "Acknowledge what is selected, else the row"],
  [["r"], "Resolve what is selected, else the row"],
  [["z"], "Undo what was acknowledged or resolved last"],
  [["u"], "Mark the row as unread, or as read"],
  [["/"], "Search"],
  [["Ctrl K"], "Find a page, a rule, an alert or an action"],
  [["?"], "Show these keys"],
];

/** The keys of the inbox, over the page. It is open for as long as it is rendered. */
export function KeyHelp({ onClose }: { onClose: () => void }) {
  const dialog = useModal();
  return (
    <dialog ref={dialog} className={dialogStyles.dialog} aria-labelledby="inbox-keys" onCancel={onClose}>
      <h2 id="inbox-keys">Keys of the inbox</h2>
      <dl className={styles.keyList}>
        {keys.map(([names, does]) => (
          <div key={does}>
            <dt>
              {names.map((name) => (
                <kbd key={name}>{name}</kbd>
              ))}
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
      <div className={dialogStyles.actions}>
        <Button onClick={onClose}>Close</Button>
      </div>
    </dialog>
  );
}

/** The keys that one needs most, at the foot of the list. */
export function KeyLine({ onHelp }: { onHelp: () => void }) {
  return (
    <p className={styles.keys}>
      {(
        [
          ["j k", "move"],
          ["Enter", "open"],
          ["x", "select"],
          ["a", "acknowledge"],
          ["r", "resolve"],
          ["/", "search"],
        ] as const
      ).map(([key, does]) => (
        <span key={key}>
          <kbd>{key}</kbd> {does}
        </span>
      ))}
      <button type="button" onClick={onHelp}>
        <kbd>?</kbd> all keys
      </button>
    </p>
  );
}
