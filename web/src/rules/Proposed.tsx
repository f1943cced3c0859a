import { Link } from "@tanstack/react-router";
import formStyles from "../ui/form.module.css";
import type { Proposal } from "./useRefined";

interface Props {
  proposal: Proposal;
  isNew: boolean;
  /** Called before the editor of the other rule opens, which begins again. */
  onSwitch: () => void;
}

/** Says what an alert has filled in, and links to the other rule that it may be meant for. */
export function Proposed({ proposal, isNew, onSwitch }: Props) {
  const { by, ruleId, words } = proposal;
  return (
    <p className={formStyles.note} role="status">
      <span>
        Filled in from{" "}
        <Link to="/inbox/$alertId" params={{ alertId: by.alert }}>
          an alert
        </Link>
        : {words}. Nothing has been saved.
      </span>
      {isNew ? (
        <Link to="/rules/$ruleId/edit" params={{ ruleId }} search={by} onClick={onSwitch}>
          Change existing rule instead
        </Link>
      ) : (
        <Link to="/rules/new" search={by} onClick={onSwitch}>
          Create new rule instead
        </Link>
      )}
    </p>
  );
}
