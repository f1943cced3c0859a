import type { Icon } from "@tabler/icons-react";
import { createContext, type ReactNode, useContext, useEffect, useRef, useState } from "react";
import { PageShown } from "./pageShown";
import { singleKeys } from "./setting";

export type Section = "This alert" | "Inbox" | "Pages" | "Actions";

/** Something that a person can do here: by key, from the command palette, or both. */
export interface Command {
  id: string;
  section: Section;
  label: string;
  /** In lower case, like KeyboardEvent.key: "j", "shift+x", "mod+k" (Ctrl or Cmd). Help shows the first one. */
  keys?: readonly string[];
  /** The palette offers the commands that have an icon. */
  icon?: Icon;
  /** Other words by which the palette finds it. */
  words?: string;
  /** True by default. */
  enabled?: boolean;
  /** Returns false if it did not use the key, which the browser then handles. */
  run: (event?: KeyboardEvent) => unknown;
}

type Source = { current: readonly Command[] };

/** The commands of everything on the page. */
class Registry {
  private readonly sources = new Set<Source>();

  add(source: Source): () => void {
    this.sources.add(source);
    return () => this.sources.delete(source);
  }

  /** The commands of the newest component come first. */
  list(): readonly Command[] {
    return [...this.sources].reverse().flatMap((source) => source.current);
  }
}

const RegistryContext = createContext(new Registry());

/** Runs commands by their keys while the page is shown. There is one on the page. */
export function CommandProvider({ children }: { children: ReactNode }) {
  const [registry] = useState(() => new Registry());
  const shown = useContext(PageShown);
  useEffect(() => {
    if (!shown) return;
    const onKeyDown = (event: KeyboardEvent) => {
      const names = namesOf(event);
      for (const name of names) {
        for (const { keys, enabled = true, run } of registry.list()) {
          if (!enabled || !keys?.includes(name) || run(event) === false) continue;
          event.preventDefault();
          return;
        }
      }
    };
    document.addEventListener("keydown", onKeyDown);
    return () => document.removeEventListener("keydown", onKeyDown);
  }, [registry, shown]);
  return <RegistryContext value={registry}>{children}</RegistryContext>;
}

/** Offers commands while the component is on the page. */
export function useCommands(commands: readonly Command[]): void {
  const registry = useContext(RegistryContext);
  const source = useRef(commands);
  useEffect(() => {
    source.current = commands;
  });
  useEffect(() => registry.add(source), [registry]);
}

/** Returns a function that reads the present commands. */
export function useCommandList(): () => readonly Command[] {
  const registry = useContext(RegistryContext);
  return () => registry.list();
}

/** Keys for moving, which repeat while they are held. Any other key acts once. */
const moving: ReadonlySet<string> = new Set(["j", "k", "arrowdown", "arrowup", "pagedown", "pageup"]);

/**
 * The names by which a command may be bound to this key, most exact first; none if the key belongs
 * to something else.
 */
function namesOf(event: KeyboardEvent): readonly string[] {
  if (event.defaultPrevented || event.altKey || event.isComposing) return [];
  const key = event.key.toLowerCase();
  if (event.repeat && !moving.has(key)) return [];
  if (event.ctrlKey || event.metaKey) return event.shiftKey ? [] : [`mod+${key}`];
  if (isTaken(event) || (key.length === 1 && singleKeys.current() === "off")) return [];
  // A sign such as ? may need Shift on one keyboard and not on another.
  return event.shiftKey ? [`shift+${key}`, ...(/^[a-z]$/.test(key) ? [] : [key])] : [key];
}

/**
 * Whether a person types at the focus, a dialog or an open menu takes keys, or Enter belongs to a
 * link or button. A menu that is no list has the attribute `data-takes-keys`.
 */
function isTaken(event: KeyboardEvent): boolean {
  const target = event.target;
  if (document.querySelector("dialog[open], [data-takes-keys]")) return true;
  if (!(target instanceof HTMLElement)) return false;
  if (target.hasAttribute("aria-haspopup") && target.getAttribute("aria-expanded") === "true") return true;
  const typing = "input:not([type=checkbox]), textarea, select, [role=listbox], [role=combobox]";
  if (target.isContentEditable || target.closest(typing)) return true;
  return event.key === "Enter" && target.closest("a, button") !== null;
}

const names: Record<string, string> = {
  shift: "Shift",
  mod: /Mac|iPhone|iPad/.test(navigator.platform) ? "⌘" : "Ctrl",
  enter: "Enter",
  escape: "Esc",
  arrowdown: "↓",
  arrowup: "↑",
};

/** The text of a key on the page: "Shift x". */
export function keyName(key: string): string {
  if (key === "+") return key;
  return key
    .split("+")
    .map(
      (part, index, parts) =>
        names[part] ?? (parts.length > 1 && index > 0 && parts[0] === "mod" ? part.toUpperCase() : part),
    )
    .join(" ");
}

/** Returns a function that runs a command by its id, as its key does. */
export function useRunCommand(): (id: string) => void {
  const registry = useContext(RegistryContext);
  return (id) =>
    void registry
      .list()
      .find((command) => command.id === id && command.enabled !== false)
      ?.run();
}
