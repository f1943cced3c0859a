package alerts

import "tocsin/internal/fault"

// Snoozable returns nil if an alert in this state can be snoozed. The person is reminded when the
// snooze ends. Otherwise it returns a conflict that says why not.
func (s State) Snoozable() error {
	switch s {
	case Firing, Acknowledged:
		return nil
	case Pending:
		return fault.New(fault.Conflict, "the alert is not firing yet; snooze it when it is")
	case Resolved:
	}
	return fault.New(fault.Conflict, "the alert is resolved; a resolved alert cannot be snoozed")
}

// Reassign reports whether an alert passes from one assignee to another; empty means nobody. was is
// the assignee that the caller saw, so that a caller who has not seen the last change does not undo
// it. The error is a conflict that says why the alert cannot pass.
func (s State) Reassign(from, was, to string) (bool, error) {
	switch {
	case s == Pending:
		return false, fault.New(fault.Conflict, "the alert is not firing yet; assign it when it is")
	case from == to:
		return false, nil
	case s == Resolved:
		return false, fault.New(fault.Conflict, "the alert is resolved; a resolved alert cannot be assigned")
	case from == was:
		return true, nil
	case from == "":
		return false, fault.New(fault.Conflict, "the alert is no longer assigned to %s; it is now unassigned: try again if this should change", was)
	}
	return false, fault.New(fault.Conflict, "the alert is assigned to %s; try again if this should change", from)
}
