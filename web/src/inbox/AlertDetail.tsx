import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { me } from "../api/access";
import { oneAlert } from "../api/alerts";
import type { Alert } from "../api/client";
import { mayCall } from "../api/operations";
import { Button, buttonClass, Key } from "../ui/Button";
import { CopyButton } from "../ui/CopyButton";
import { IconAcknowledged, IconReopened, IconResolved, IconSilence } from "../ui/icons";
import { useLastError } from "../ui/lastError";
import { DetailFrame } from "../ui/MasterDetail";
import { StateMark } from "../ui/marks";
import { Failed, SkeletonRows } from "../ui/states";
import { AlertBody } from "./AlertBody";
import { AssignButton } from "./Assignee";
import type { Action } from "./actions";
import { cachedAlert } from "./patch";
import { ResolveFor } from "./ResolveFor";
import { reopenWord, useReopen, useReopenable } from "./reopen";
import { canBecome } from "./rows";
import { SnoozeButton } from "./Snooze";

/** The open alert. The data in a list is shown at once, the rest when it arrives. */
export function useOpenAlert(id: string | undefined) {
  const cache = useQueryClient();
  return useQuery({
    ...oneAlert(id ?? ""),
    enabled: id !== undefined,
    placeholderData: () => (id === undefined ? undefined : cachedAlert(cache, id)),
  });
}

interface Props {
  id: string;
  alone: boolean;
  /** Whether the reader's role may act on alerts. */
  may: boolean;
  onAct: (action: Action) => void;
  /** Whether alerts are selected, which the keys then apply to. */
  selecting?: boolean;
}

export function AlertDetail({ id, alone, may, onAct, selecting = false }: Props) {
  const { data: alert, error: newest, isPlaceholderData, refetch } = useOpenAlert(id);
  const error = useLastError({ data: alert, error: newest }, id);
  return (
    <DetailFrame
      label="Alert"
      content="What happened"
      list="/inbox"
      back="Back to the inbox"
      alone={alone}
      actions={alert && <Actions alert={alert} may={may} onAct={onAct} selecting={selecting} />}
      end={alert && <CopyButton text={`${globalThis.location.origin}/inbox/${id}`} what="the link to this alert" />}
    >
      {alert ? (
        <AlertBody alert={alert} complete={!isPlaceholderData} />
      ) : error ? (
        <Failed error={error} onRetry={refetch}>
          <Link to="/inbox" search={true}>
            Back to the inbox
          </Link>
        </Failed>
      ) : (
        <SkeletonRows count={6} height={60} label="Loading the alert" />
      )}
    </DetailFrame>
  );
}

interface ActionsProps extends Pick<Props, "may" | "onAct"> {
  alert: Alert;
  selecting: boolean;
}

function Actions({ alert, may, onAct, selecting }: ActionsProps) {
  return (
    <>
      {may && alert.state === "FIRING" && (
        <Button look="primary" onClick={() => onAct({ alert, to: "ACKNOWLEDGED" })}>
          <IconAcknowledged size={16} aria-hidden="true" />
          Acknowledge <Key>A</Key>
        </Button>
      )}
      {may && canBecome(alert, "RESOLVED") ? (
        <Button onClick={() => onAct({ alert, to: "RESOLVED" })}>
          <IconResolved size={16} aria-hidden="true" />
          Resolve <Key>R</Key>
        </Button>
      ) : (
        <StateMark state={alert.state} />
      )}
      {may && <ReopenButton alert={alert} />}
      {may && alert.count && canBecome(alert, "RESOLVED") && <ResolveFor alert={alert} onAct={onAct} />}
      {may && <AssignButton alert={alert} selecting={selecting} />}
      {may && <SnoozeButton alert={alert} />}
      <SilenceThis alert={alert} />
    </>
  );
}

/** Reopens an alert, for as long as its reader can. */
function ReopenButton({ alert }: { alert: Alert }) {
  const reopen = useReopen();
  if (!useReopenable(alert)) return null;
  return (
    <Button busy={reopen.isPending} onClick={() => reopen.mutate(alert)}>
      <IconReopened size={16} aria-hidden="true" />
      {reopenWord(alert)} <Key>O</Key>
    </Button>
  );
}

/** Links to a new silence about this alert and similar ones, which is not saved yet. */
function SilenceThis({ alert }: { alert: Alert }) {
  const { data: who } = useQuery(me());
  if (alert.health || !mayCall(who, "createSilence")) return null;
  return (
    <Link to="/silences/new" search={{ alert: alert.id }} className={buttonClass()}>
      <IconSilence size={16} aria-hidden="true" />
      Silence
    </Link>
  );
}
