import { useQuery } from "@tanstack/react-query";
import { type EncryptionKey, encryptionKeys } from "../api/access";
import { useMay } from "../api/operations";
import { Button } from "../ui/Button";
import { CopyButton } from "../ui/CopyButton";
import { IconAcknowledged, IconCheck, IconKeyOff, IconResolved } from "../ui/icons";
import { useLastError } from "../ui/lastError";
import { Failed, SkeletonRows } from "../ui/states";
import table from "../ui/table.module.css";
import { counted } from "../ui/words";
import { AccessPage } from "./AccessPage";
import styles from "./access.module.css";

/** The keys that encrypt the secrets of webhooks: which are in use, and what to do about the others. */
export function KeysPage() {
  const keys = useQuery({ ...encryptionKeys(), enabled: useMay()("listEncryptionKeys") });
  const failure = useLastError(keys);
  return (
    <AccessPage
      title="Encryption keys"
      admin
      actions={
        <Button busy={keys.isFetching} onClick={() => void keys.refetch()}>
          Reload
        </Button>
      }
    >
      <p className={styles.intro}>
        URLs, headers and signing secrets of webhooks are stored encrypted. The keys are in{" "}
        <code>TOCSIN_ENCRYPTION_KEY</code>, the active one first. This page shows only their IDs, which reveal nothing.
        The counts include the secrets of all tenants.
      </p>
      {keys.isPending && !failure ? (
        <SkeletonRows headed count={2} height={56} label="Loading the keys" />
      ) : keys.data === undefined ? (
        <Failed error={failure} onRetry={keys.refetch} />
      ) : (
        <table className={table.table}>
          <thead>
            <tr>
              <th scope="col">Key</th>
              <th scope="col">State</th>
              <th scope="col">Encrypts</th>
            </tr>
          </thead>
          <tbody>
            {keys.data.map((key) => (
              <KeyRow key={key.id || "none"} of={key} />
            ))}
          </tbody>
        </table>
      )}
    </AccessPage>
  );
}

const meaning = {
  ACTIVE: { word: "Active", icon: IconCheck, look: "", next: "Encrypts everything that is stored from now on." },
  IN_USE: {
    word: "In use",
    icon: IconAcknowledged,
    look: table.warn,
    next: "Run tocsin keys reseal to encrypt these secrets with the active key.",
  },
  UNUSED: {
    word: "No longer needed",
    icon: IconResolved,
    look: table.quiet,
    next: "Remove it from TOCSIN_ENCRYPTION_KEY on all replicas.",
  },
  MISSING: {
    word: "Missing",
    icon: IconKeyOff,
    look: table.bad,
    next: "Add it to TOCSIN_ENCRYPTION_KEY on all replicas, or enter the secrets of these webhooks again.",
  },
  UNKNOWN: {
    word: "Unknown format",
    icon: IconKeyOff,
    look: table.bad,
    next: "Enter the secrets of these webhooks again.",
  },
} as const satisfies Record<EncryptionKey["state"], object>;

function KeyRow({ of: { id, state, secrets } }: { of: EncryptionKey }) {
  const { word, icon: Icon, look, next } = meaning[state];
  return (
    <tr>
      <td>
        <span className={`${table.name} mono`}>{id || "No key"}</span>
        {id && <CopyButton text={id} what="the ID" />}
      </td>
      <td>
        <span className={look}>
          <Icon size={16} aria-hidden="true" className={styles.mark} /> {word}
        </span>
        <div className={table.sub}>{next}</div>
      </td>
      <td data-label="Encrypts">{counted(secrets, "webhook")}</td>
    </tr>
  );
}
