import type { Alert } from "../api/client";
import { span } from "../ui/time";

/** An alert that is raised later than this after its exchange ended says so. */
const noticedSeconds = 60;

/** How long after the end of its exchange an alert was raised, if that is long; otherwise "". */
export function latenessWord({ lateBySeconds }: Pick<Alert, "lateBySeconds">): string {
  return lateBySeconds === undefined || lateBySeconds < noticedSeconds ? "" : `${span(lateBySeconds)} late`;
}

/** The same in full, for the alert itself; "" if it is not about one exchange. */
export function latenessSentence({ late, lateBySeconds }: Pick<Alert, "late" | "lateBySeconds">): string {
  if (lateBySeconds === undefined) return "";
  const after = lateBySeconds < 1 ? "less than 1 s" : span(lateBySeconds);
  return `${after} after the exchange ended${late ? "; the exchange became visible late" : ""}`;
}
