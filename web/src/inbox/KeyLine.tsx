import { useRunCommand } from "../ui/commands";
import { singleKeys, useSetting } from "../ui/setting";
import styles from "./InboxPage.module.css";

/** The most useful keys, at the bottom of the list. */
export function KeyLine() {
  const run = useRunCommand();
  if (useSetting(singleKeys) === "off") return null;
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
      <button type="button" onClick={() => run("help")}>
        <kbd>?</kbd> all keys
      </button>
    </p>
  );
}
