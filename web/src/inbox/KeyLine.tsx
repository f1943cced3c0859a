import { useRunCommand } from "../ui/commands";
import { singleKeys, useSetting } from "../ui/setting";
import styles from "./InboxPage.module.css";

/** The most useful keys, at the bottom of the list: those of actions only for readers who may act. */
export function KeyLine({ may }: { may: boolean }) {
  const run = useRunCommand();
  if (useSetting(singleKeys) === "off") return null;
  return (
    <p className={styles.keys}>
      {(
        [
          ["j k", "move"],
          ["Enter", "open"],
          ["x", "select"],
          ...(may
            ? ([
                ["a", "acknowledge"],
                ["r", "resolve"],
              ] as const)
            : []),
          ["/", "search"],
        ] as const
      ).map(([key, does]) => (
        <span key={key}>
          <kbd>{key}</kbd> {does}
        </span>
      ))}
      <button type="button" onClick={() => run("help")}>
        <kbd>?</kbd> all keys
      </button>
    </p>
  );
}
