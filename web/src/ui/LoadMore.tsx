import type { UseInfiniteQueryResult } from "@tanstack/react-query";
import { reasonOf } from "../api/errors";
import { Button } from "./Button";
import styles from "./states.module.css";

interface Props {
  list: Pick<UseInfiniteQueryResult, "isFetchingNextPage" | "isFetchNextPageError" | "error" | "fetchNextPage">;
  /** The text of the button. */
  children: string;
}

/** Loads the next page of a list that has one, and says why it could not be loaded. */
export function LoadMore({ list, children }: Props) {
  return (
    <>
      {list.isFetchNextPageError && (
        <p className={styles.notLoaded} role="alert">
          Not loaded. {reasonOf(list.error)}
        </p>
      )}
      <Button busy={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
        {children}
      </Button>
    </>
  );
}
