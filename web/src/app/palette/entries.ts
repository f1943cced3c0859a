import type { Icon } from "@tabler/icons-react";
import type { Section as CommandSection } from "../../ui/commands";

/** Something that the palette reaches. */
export interface Entry {
  id: string;
  /** The heading above it. */
  section: Section;
  label: string;
  /** The small text beside it. */
  hint?: string;
  /** Other texts by which it is found. */
  words?: string;
  icon: Icon;
  /** Entries that the server has found are not filtered again. */
  found?: boolean;
  run: () => unknown;
}

export type Section = CommandSection | "Alerts" | "Rules" | "Webhooks";

const order: readonly Section[] = ["This alert", "Inbox", "Pages", "Actions", "Rules", "Webhooks", "Alerts"];
const mostOfSection = 14;

/**
 * The entries that match a text, by section: each word of the text begins, or is within, a word of
 * the entry. Entries that begin with the text come first. Without a text there are only actions,
 * and not a person's objects.
 */
export function sift(entries: readonly Entry[], text: string): { section: Section; entries: readonly Entry[] }[] {
  const asked = text.toLowerCase().split(/\s+/).filter(Boolean);
  const kept = entries
    .map((entry) => ({ entry, rank: entry.found ? 0 : rankOf(entry, asked) }))
    .filter(({ rank }) => rank !== undefined)
    .sort((a, b) => (a.rank ?? 0) - (b.rank ?? 0))
    .map(({ entry }) => entry);
  return order
    .map((section) => ({ section, entries: kept.filter((entry) => entry.section === section).slice(0, mostOfSection) }))
    .filter((group) => group.entries.length > 0);
}

/**
 * 0 if every word begins a word of the label, 1 if every word is somewhere in it, 2 for other
 * texts; undefined for no match.
 */
function rankOf({ label, words = "", hint = "", section }: Entry, asked: readonly string[]): number | undefined {
  if (asked.length === 0) return section === "Rules" || section === "Webhooks" ? undefined : 0;
  const name = label.toLowerCase();
  const all = `${name} ${words} ${hint} ${section}`.toLowerCase();
  const begins = (text: string, word: string) => text.split(/[^\p{L}\p{N}]+/u).some((part) => part.startsWith(word));
  if (asked.every((word) => begins(name, word))) return 0;
  if (asked.every((word) => name.includes(word))) return 1;
  return asked.every((word) => all.includes(word)) ? 2 : undefined;
}
