import { useState } from "react";
import type { Alert } from "../api/client";
import { Amount } from "../ui/Amount";
import { Button } from "../ui/Button";
import { FormDialog } from "../ui/FormDialog";
import type { Action } from "./actions";

const longest = 30 * 86_400;

/** Resolves an alert of a window rule, and holds its group for a time that the person chooses. */
export function ResolveFor({ alert, onAct }: { alert: Alert; onAct: (action: Action) => void }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <Button onClick={() => setOpen(true)}>Resolve for…</Button>
      {open && <Dialog alert={alert} onAct={onAct} onClose={() => setOpen(false)} />}
    </>
  );
}

function Dialog({ alert, onAct, onClose }: { alert: Alert; onAct: (action: Action) => void; onClose: () => void }) {
  const [seconds, setSeconds] = useState<number | undefined>(4 * 3600);
  const [wrong, setWrong] = useState("");
  return (
    <FormDialog
      title="Resolve for a while"
      action="Resolve"
      onClose={onClose}
      onSubmit={() => {
        if (seconds === undefined || seconds < 60 || seconds > longest) {
          setWrong("Must be from 1 min to 30 d");
          return;
        }
        onAct({ alert, to: "RESOLVED", holdUntil: new Date(Date.now() + seconds * 1000).toISOString() });
        onClose();
      }}
    >
      <p>
        Without a duration, a resolved alert fires again only after its value has been back on the other side of the
        threshold. With a duration, nothing fires for {alert.count?.group ? `“${alert.count.group}”` : "this rule"}{" "}
        until it has passed, whatever the value is; then it may fire again.
      </p>
      <Amount
        label="Duration"
        units={[
          { size: 1, word: "s" },
          { size: 60, word: "min" },
          { size: 3600, word: "h" },
          { size: 86_400, word: "d" },
        ]}
        value={seconds}
        error={wrong}
        onChange={(value) => {
          setSeconds(value);
          setWrong("");
        }}
      />
    </FormDialog>
  );
}
