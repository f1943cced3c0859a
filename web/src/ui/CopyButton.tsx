import { useState } from "react";
import styles from "./CopyButton.module.css";
import { IconCheck, IconCopy } from "./icons";
import { useToast } from "./toast";

const shownMs = 2_000;

/** Copies a text, and confirms it. `what` names the text: "Copy the execution ID". */
export function CopyButton({ text, what }: { text: string; what: string }) {
  const [done, setDone] = useState(false);
  const toast = useToast();
  const copy = async () => {
    if (!(await copyText(text)))
      return toast("This browser does not allow the page to copy. Select the text and copy it manually.", "failed");
    setDone(true);
    setTimeout(() => setDone(false), shownMs);
  };
  const Icon = done ? IconCheck : IconCopy;
  return (
    <button
      type="button"
      className={styles.copy}
      aria-label={`Copy ${what}`}
      title={`Copy ${what}`}
      onClick={() => void copy()}
    >
      <Icon size={14} stroke={1.8} aria-hidden="true" />
      <span className="visually-hidden" role="status">
        {done && "Copied"}
      </span>
    </button>
  );
}

/** Over plain http a page has no clipboard API; the older command works there. */
async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = document.createElement("textarea");
    field.value = text;
    field.style.position = "fixed";
    (document.querySelector("dialog[open]") ?? document.body).append(field);
    field.select();
    const copied = typeof document.execCommand === "function" && document.execCommand("copy");
    field.remove();
    return copied;
  }
}
