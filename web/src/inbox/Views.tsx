import { TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { me } from "../api/access";
import { Button } from "../ui/Button";
import { CopyButton } from "../ui/CopyButton";
import { FormDialog } from "../ui/FormDialog";
import { IconTrash } from "../ui/icons";
import type { InboxSearch } from "./filter";
import styles from "./Views.module.css";
import { addressOf, removeView, saveView, useViews } from "./views";

/** The saved views, and the way to save the present one. It is open for as long as it is rendered. */
export function Views({ search, onClose }: { search: InboxSearch; onClose: () => void }) {
  const { data: who } = useQuery(me());
  const person = who?.id ?? who?.name ?? "";
  const views = useViews(person);
  const [name, setName] = useState("");
  const [problem, setProblem] = useState<string>();
  const link = (of: InboxSearch) => `${globalThis.location.origin}/inbox${addressOf(of)}`;
  const save = () => {
    if (name.trim() === "") return setProblem("Give the view a name.");
    setProblem(
      saveView(person, { name, search }) ? undefined : "This browser cannot store views. Copy the link instead.",
    );
    setName("");
  };
  return (
    <FormDialog title="Views" action="Save the view" close="Close" problem={problem} onSubmit={save} onClose={onClose}>
      {views.length > 0 && (
        <ul className={styles.views} aria-label="Saved views">
          {views.map((view) => (
            <li key={view.name}>
              <Link to="/inbox" search={view.search} onClick={onClose}>
                {view.name}
              </Link>
              <CopyButton text={link(view.search)} what={`the link to ${view.name}`} />
              <Button
                look="quiet"
                iconOnly
                aria-label={`Delete ${view.name}`}
                onClick={() => removeView(person, view.name)}
              >
                <IconTrash size={15} aria-hidden="true" />
              </Button>
            </li>
          ))}
        </ul>
      )}
      <TextInput
        label="Save these filters as"
        placeholder="Orders in production"
        maxLength={60}
        autoComplete="off"
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
      />
      <p className={styles.share}>
        Views are kept in this browser. To share one, copy its link:{" "}
        <CopyButton text={link(search)} what="the link to these filters" />
      </p>
    </FormDialog>
  );
}
