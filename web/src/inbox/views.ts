import { isAtLeast, type Me } from "../api/access";
import type { View } from "../api/client";
import { parseAddress, writeAddress } from "../ui/address";
import { type InboxSearch, parseSearch } from "./filter";

/** The query of a view's address, "" for the inbox as it is at first. */
export const queryOf = (search: InboxSearch): string =>
  writeAddress({ ...parseSearch({ ...search }) }).replace(/^\?/, "");

/** What a view was saved with may be older than this page, or newer: what makes no sense is left out. */
export const searchOf = ({ search }: View): InboxSearch => parseSearch(parseAddress(search));

/** Its owner may delete a view, and administrators those that are shared. */
export const mayDelete = (who: Me | undefined, view: View): boolean => view.own || isAtLeast(who, "admin");

/** The reader's own view of a name, which saving under that name replaces. */
export const replacedBy = (views: readonly View[], name: string): View | undefined =>
  views.find((view) => view.own && view.name === name.trim());
