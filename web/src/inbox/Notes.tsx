import { Textarea } from "@mantine/core";
import { useForm } from "@mantine/form";
import { useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { actorOf, type Me, me } from "../api/access";
import type { IssueNote } from "../api/client";
import { deleteNote, type Noted, notesOf, writeNote } from "../api/notes";
import { useMay } from "../api/operations";
import { randomId } from "../api/uuid";
import { Button } from "../ui/Button";
import { When } from "../ui/Instant";
import { IconTrash } from "../ui/icons";
import { LeaveGuard } from "../ui/LeaveGuard";
import { LoadMore } from "../ui/LoadMore";
import { useLastError } from "../ui/lastError";
import overview from "../ui/overview.module.css";
import { RemoveDialog } from "../ui/RemoveDialog";
import { Failed, SkeletonRows } from "../ui/states";
import { useServerForm } from "../ui/useServerForm";
import styles from "./Notes.module.css";

const longest = 4000;

interface Props {
  of: Noted;
  /** Who can read a note, and where. */
  readers: string;
}

/** Notes, and a field to write one. */
export function Notes({ of, readers }: Props) {
  const may = useMay();
  const { data: who } = useQuery(me());
  const notes = useInfiniteQuery(notesOf(of));
  const failure = useLastError(notes);
  const [doomed, setDoomed] = useState<IssueNote>();
  const items = notes.data?.pages.flatMap((page) => page.items);
  return (
    <>
      {may("alertId" in of ? "createAlertNote" : "createIssueNote") && <Write of={of} readers={readers} />}
      {items === undefined ? (
        failure ? (
          <Failed error={failure} onRetry={notes.refetch} />
        ) : (
          <SkeletonRows count={1} height={56} label="Loading notes" />
        )
      ) : items.length === 0 ? (
        <p className={overview.quiet}>No notes yet.</p>
      ) : (
        <ul className={overview.list} aria-label="Notes">
          {items.map((note) => (
            <li key={note.id}>
              <div className={styles.about}>
                <div>
                  <b>{note.author}</b>
                  <When at={note.writtenAt} stop />
                </div>
                {may("deleteIssueNote") && mayDelete(who, note) && (
                  <Button
                    look="quiet"
                    iconOnly
                    data-remove="notes"
                    aria-label={`Delete note by ${note.author}`}
                    onClick={() => setDoomed(note)}
                  >
                    <IconTrash size={16} aria-hidden="true" />
                  </Button>
                )}
              </div>
              <p className={styles.text}>{note.text}</p>
            </li>
          ))}
        </ul>
      )}
      {notes.hasNextPage && <LoadMore list={notes}>Load older notes</LoadMore>}
      {doomed && (
        <RemoveDialog
          title="Delete this note?"
          action="Delete note"
          remove={() => deleteNote(doomed.id)}
          done="Note deleted."
          notDone="The note was not deleted."
          stale={notesOf(of).queryKey}
          onClose={() => setDoomed(undefined)}
        >
          <p>The audit log records who wrote it and who deleted it, but not the text.</p>
        </RemoveDialog>
      )}
    </>
  );
}

/** The author of a note can delete it, and so can administrators. */
function mayDelete(who: Me | undefined, { author }: IssueNote): boolean {
  if (who === undefined) return false;
  return who.role === "admin" || author === actorOf(who);
}

function Write({ of, readers }: Props) {
  const cache = useQueryClient();
  const form = useForm({ initialValues: { text: "" } });
  // If the same text is sent again because its answer was lost, it is the same note.
  const sent = useRef({ text: "", noteId: "" });
  const write = useServerForm({
    form,
    fields: ["text"],
    send: (text: string) => {
      if (sent.current.text !== text) sent.current = { text, noteId: randomId() };
      return writeNote(of, sent.current);
    },
    onSaved: () => {
      // What was typed meanwhile is the beginning of the next note.
      const text = form.getValues().text.trimStart();
      const next = text.startsWith(sent.current.text) ? text.slice(sent.current.text.length).trimStart() : text;
      sent.current = { text: "", noteId: "" };
      form.setValues({ text: next });
    },
    onSettled: () => cache.invalidateQueries({ queryKey: notesOf(of).queryKey }),
  });
  const text = form.values.text.trim();
  return (
    <form
      className={styles.write}
      onSubmit={(event) => {
        event.preventDefault();
        if (text && !write.busy) write.submit(text);
      }}
    >
      <LeaveGuard dirty={() => text !== ""} whole={!("alertId" in of)}>
        <p>Your note has not been saved.</p>
      </LeaveGuard>
      <Textarea label="New note" description={readers} rows={3} maxLength={longest} {...form.getInputProps("text")} />
      {write.problem && <p role="alert">{write.problem}</p>}
      <Button type="submit" disabled={!text} busy={write.busy}>
        Add note
      </Button>
    </form>
  );
}
