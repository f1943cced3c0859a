import { isAtLeast, type Me } from "../api/access";
import type { View } from "../api/client";
import { parseAddress, writeAddress } from "../ui/address";
import { type InboxSearch, parseSearch } from "./filter";

/** The query of a view's address; "" for the default inbox. */
export const queryOf = (search: InboxSearch): string =>
  writeAddress({ ...parseSearch({ ...search }) }).replace(/^\?/, "");

/** A view may have been saved by an older or a newer version: invalid parts are ignored. */
export const searchOf = ({ search }: View): InboxSearch => parseSearch(parseAddress(search));

/** The owner of a view can delete it; administrators can delete shared views. */
export const mayDelete = (who: Me | undefined, view: View): boolean => view.own || isAtLeast(who, "admin");

/** The reader's own view with a name, which saving under that name replaces. */
export const replacedBy = (views: readonly View[], name: string): View | undefined =>
  views.find((view) => view.own && view.name === name.trim());
