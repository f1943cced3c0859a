import { Checkbox, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { isAtLeast, me } from "../api/access";
import type { View } from "../api/client";
import { deleteView, savedViews, saveView, viewKeys } from "../api/views";
import { Button } from "../ui/Button";
import { CopyButton } from "../ui/CopyButton";
import { FormDialog } from "../ui/FormDialog";
import { IconTrash } from "../ui/icons";
import { useLastError } from "../ui/lastError";
import { RemoveDialog } from "../ui/RemoveDialog";
import { Failed, SkeletonRows } from "../ui/states";
import { useServerForm } from "../ui/useServerForm";
import type { InboxSearch } from "./filter";
import styles from "./Views.module.css";
import { mayDelete, queryOf, replacedBy, searchOf } from "./views";

const longestName = 60;

/** The saved views, and saving the present one. It is open while it is rendered. */
export function Views({ search, onClose }: { search: InboxSearch; onClose: () => void }) {
  const cache = useQueryClient();
  const { data: who } = useQuery(me());
  const views = useQuery(savedViews());
  const failure = useLastError(views);
  const [doomed, setDoomed] = useState<View>();
  const form = useForm({ initialValues: { name: "", shared: false } });
  const save = useServerForm({
    form,
    fields: ["name"],
    send: saveView,
    onSaved: () => form.reset(),
    onSettled: () => cache.invalidateQueries({ queryKey: viewKeys.all }),
  });
  const { name, shared } = form.values;
  const replaced = replacedBy(views.data ?? [], name);
  const submit = () => {
    if (name.trim() === "") return form.setErrors({ name: "Give the view a name." });
    save.submit({ name: name.trim(), search: queryOf(search), shared });
  };
  return (
    <>
      <FormDialog
        title="Views"
        action={replaced ? "Replace view" : "Save view"}
        close="Close"
        busy={save.busy}
        problem={save.problem}
        onSubmit={submit}
        onClose={onClose}
      >
        {views.data === undefined ? (
          failure ? (
            <Failed error={failure} onRetry={views.refetch} />
          ) : (
            <SkeletonRows count={2} height={32} label="Loading the views" />
          )
        ) : views.data.length === 0 ? (
          <p className={styles.quiet}>No saved views yet. A view is a named set of filters.</p>
        ) : (
          <ul className={styles.views} aria-label="Saved views">
            {views.data.map((view) => (
              <li key={view.id}>
                <Link to="/inbox" search={searchOf(view)} onClick={onClose} className={styles.name}>
                  {view.name}
                </Link>
                {view.shared && <span className={styles.quiet}>{view.own ? "Shared" : `By ${view.owner}`}</span>}
                <span className={styles.actions}>
                  <CopyButton text={linkTo(searchOf(view))} what={`the link to ${view.name}`} />
                  {mayDelete(who, view) && (
                    <Button
                      look="quiet"
                      iconOnly
                      data-remove="views"
                      aria-label={`Delete ${view.name}`}
                      onClick={() => setDoomed(view)}
                    >
                      <IconTrash size={15} aria-hidden="true" />
                    </Button>
                  )}
                </span>
              </li>
            ))}
          </ul>
        )}
        <TextInput
          label="Save these filters as"
          placeholder="Orders in production"
          maxLength={longestName}
          autoComplete="off"
          description={replaced && "You already have a view with this name. Saving replaces it."}
          {...form.getInputProps("name")}
        />
        {isAtLeast(who, "operator") && (
          <Checkbox label="Share with everyone" {...form.getInputProps("shared", { type: "checkbox" })} />
        )}
        <p className={styles.quiet}>
          Link to these filters: <CopyButton text={linkTo(search)} what="the link to these filters" />
        </p>
      </FormDialog>
      {doomed && (
        <RemoveDialog
          title={`Delete the view “${doomed.name}”?`}
          action="Delete view"
          remove={() => deleteView(doomed.id)}
          done="View deleted."
          notDone="The view was not deleted."
          stale={viewKeys.all}
          onClose={() => setDoomed(undefined)}
        >
          <p>{doomed.shared ? "Nobody will see it any more." : "The alerts are not affected."}</p>
        </RemoveDialog>
      )}
    </>
  );
}

function linkTo(search: InboxSearch): string {
  const query = queryOf(search);
  return `${globalThis.location.origin}/inbox${query && `?${query}`}`;
}
