import { Button } from "../ui/Button";
import dialogStyles from "../ui/ConfirmDialog.module.css";
import { type Command, keyName, useCommandList } from "../ui/commands";
import { SingleKeysSwitch } from "../ui/SingleKeysSwitch";
import { singleKeys, useSetting } from "../ui/setting";
import { useModal } from "../ui/useModal";
import styles from "./KeyHelp.module.css";

/** The keys with an effect on this page. It is open while it is rendered. */
export function KeyHelp({ onClose }: { onClose: () => void }) {
  const dialog = useModal();
  const commands = useCommandList()();
  const off = useSetting(singleKeys) === "off";
  const shown = commands.flatMap(({ keys: [first] = [], ...rest }) => (first ? [{ ...rest, key: first }] : []));
  return (
    <dialog ref={dialog} className={dialogStyles.dialog} aria-labelledby="keys-title" onCancel={onClose}>
      <h2 id="keys-title">Keyboard shortcuts</h2>
      <dl className={styles.keys}>
        {inOrder(shown).map(({ id, key, label }) => (
          <div key={id} className={off && isSingle(key) ? styles.off : ""}>
            <dt>
              <kbd>{keyName(key)}</kbd>
            </dt>
            <dd>{label}</dd>
          </div>
        ))}
      </dl>
      <SingleKeysSwitch />
      <div className={dialogStyles.actions}>
        <Button onClick={onClose}>Close</Button>
      </div>
    </dialog>
  );
}

const sections = ["This alert", "Inbox", "Actions", "Pages"] as const;

const inOrder = <T extends Pick<Command, "section">>(commands: readonly T[]): readonly T[] =>
  [...commands].sort((a, b) => sections.indexOf(a.section) - sections.indexOf(b.section));

const isSingle = (key: string) => key.replace(/^shift\+/, "").length === 1;
