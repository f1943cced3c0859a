import { TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import {
  accessKeys,
  createToken,
  type Role,
  revokeToken,
  roleLabel,
  roles,
  type Token,
  tokenList,
  wallAddress,
} from "../api/access";
import { useMay } from "../api/operations";
import { Button } from "../ui/Button";
import { FormDialog, Secret } from "../ui/FormDialog";
import { Ago, ExactTime } from "../ui/Instant";
import { IconKey, IconPlus, IconTrash } from "../ui/icons";
import { useLastError } from "../ui/lastError";
import { RemoveDialog } from "../ui/RemoveDialog";
import { Select } from "../ui/Select";
import { Empty, Failed, SkeletonRows } from "../ui/states";
import table from "../ui/table.module.css";
import { useServerForm } from "../ui/useServerForm";
import { AccessPage } from "./AccessPage";

export function TokensPage() {
  const tokens = useQuery({ ...tokenList(), enabled: useMay()("listTokens") });
  const failure = useLastError(tokens);
  const [making, setMaking] = useState(false);
  const [doomed, setDoomed] = useState<Token>();
  return (
    <AccessPage
      title="Tokens"
      admin
      actions={
        <Button look="primary" data-add="tokens" onClick={() => setMaking(true)}>
          <IconPlus size={16} aria-hidden="true" />
          New token
        </Button>
      }
    >
      {tokens.isPending && !failure ? (
        <SkeletonRows headed count={4} height={56} label="Loading tokens" />
      ) : tokens.data === undefined ? (
        <Failed error={failure} onRetry={tokens.refetch} />
      ) : tokens.data.length === 0 ? (
        <Empty icon={IconKey} title="No API tokens yet">
          <p>A token gives a program access to the API with a role, until it expires or is revoked.</p>
        </Empty>
      ) : (
        <table className={table.table}>
          <thead>
            <tr>
              <th scope="col">Token</th>
              <th scope="col">Role</th>
              <th scope="col">Last used</th>
              <th scope="col">Expires</th>
              <th scope="col">
                <span className="visually-hidden">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {tokens.data.map((token) => (
              <tr key={token.id}>
                <td>
                  <div className={table.name}>{token.name}</div>
                  <div className={table.sub}>
                    <span className="mono">tcn_…{token.hint}</span> · created by {token.createdBy},{" "}
                    <Ago at={token.createdAt} />
                  </div>
                </td>
                <td>{roleLabel(token.role)}</td>
                <td data-label="Last used">
                  {token.usedAt ? <Ago at={token.usedAt} /> : <span className={table.quiet}>Never</span>}
                </td>
                <td data-label="Expires">
                  <End token={token} />
                </td>
                <td>
                  <div className={table.actions}>
                    <Button
                      look="quiet"
                      iconOnly
                      data-remove="tokens"
                      aria-label={`Revoke ${token.name}`}
                      onClick={() => setDoomed(token)}
                    >
                      <IconTrash size={16} aria-hidden="true" />
                    </Button>
                  </div>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {making && <NewToken onClose={() => setMaking(false)} />}
      {doomed && <Revoke token={doomed} onClose={() => setDoomed(undefined)} />}
    </AccessPage>
  );
}

function End({ token }: { token: Token }) {
  if (!token.expiresAt) return <span className={table.quiet}>Never</span>;
  if (Date.parse(token.expiresAt) <= Date.now()) return <span className={table.bad}>Expired</span>;
  return <ExactTime at={token.expiresAt} />;
}

const dayMs = 24 * 60 * 60 * 1000;
const lifetimes = [
  { value: "30", label: "30 days" },
  { value: "90", label: "90 days" },
  { value: "365", label: "1 year" },
  { value: "", label: "Never" },
];

function NewToken({ onClose }: { onClose: () => void }) {
  const cache = useQueryClient();
  const form = useForm({ initialValues: { name: "", role: "viewer" as Role, days: "90" } });
  const create = useServerForm({
    form,
    fields: ["name", "role"],
    send: ({ name, role, days }: typeof form.values) =>
      createToken({
        name,
        role,
        ...(days ? { expiresAt: new Date(Date.now() + Number(days) * dayMs).toISOString() } : {}),
      }),
    onSettled: () => cache.invalidateQueries({ queryKey: accessKeys.tokens }),
  });
  if (create.answer) {
    return (
      <FormDialog title={`Token “${create.answer.token.name}”`} onClose={onClose}>
        <p>Copy it now. It is not shown again. Programs send it in the header Authorization: Bearer.</p>
        <Secret>{create.answer.secret}</Secret>
        {create.answer.token.role === "viewer" && (
          <>
            <p>For a wall screen, open this URL on it. It shows firing alerts until the token expires or is revoked.</p>
            <Secret>{wallAddress(create.answer.secret)}</Secret>
          </>
        )}
      </FormDialog>
    );
  }
  return (
    <FormDialog
      title="New token"
      action="Create token"
      busy={create.busy}
      once
      problem={create.problem}
      onClose={onClose}
      onSubmit={() => create.submit(form.values)}
    >
      <TextInput label="Name" placeholder="Deployment" autoComplete="off" {...form.getInputProps("name")} />
      <Select
        label="Role"
        options={roles.map(({ value, label, may }) => ({ value, label: `${label}: ${may}` }))}
        {...form.getInputProps("role")}
      />
      <Select label="Expires" options={lifetimes} {...form.getInputProps("days")} />
    </FormDialog>
  );
}

function Revoke({ token, onClose }: { token: Token; onClose: () => void }) {
  return (
    <RemoveDialog
      title={`Revoke “${token.name}”?`}
      action="Revoke token"
      remove={() => revokeToken(token.id)}
      done={`“${token.name}” was revoked.`}
      notDone={`“${token.name}” was not revoked.`}
      stale={accessKeys.tokens}
      onClose={onClose}
    >
      Programs that use it lose access immediately.
    </RemoveDialog>
  );
}
