import { useQuery } from "@tanstack/react-query";
import { me } from "../api/access";
import { draftsOf, draftToTake, type Kind, keptDrafts } from "./draft";

/**
 * Whether the reader has written something that is not saved and not in an open editor; without an
 * id, for a new object.
 */
export function useDrafted<Values>(kind: Kind<Values>): (id: string | undefined) => boolean {
  const { data: who } = useQuery(me());
  return (id) => {
    if (who === undefined) return false;
    const of = { person: draftsOf(who), kind, id };
    return id === undefined ? draftToTake(of) !== undefined : keptDrafts(of).length > 0;
  };
}
