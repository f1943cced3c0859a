import { PasswordInput, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useRef, useState } from "react";
import {
  accessKeys,
  createLink,
  createUser,
  deleteUser,
  type Role,
  roleLabel,
  roles,
  type User,
  updateUser,
  userList,
} from "../api/access";
import { reasonOf } from "../api/errors";
import { useMay } from "../api/operations";
import { Button } from "../ui/Button";
import { FormDialog, Secret } from "../ui/FormDialog";
import { Ago } from "../ui/Instant";
import { IconKey, IconPause, IconPerson, IconPlay, IconPlus, IconTrash } from "../ui/icons";
import { useLastError } from "../ui/lastError";
import { RemoveDialog } from "../ui/RemoveDialog";
import { Select } from "../ui/Select";
import { Empty, Failed, SkeletonRows } from "../ui/states";
import table from "../ui/table.module.css";
import { useToast } from "../ui/toast";
import { useServerForm } from "../ui/useServerForm";
import { AccessPage } from "./AccessPage";

type Open = { what: "new" } | { what: "delete" | "link"; user: User };

export function UsersPage() {
  const users = useQuery({ ...userList(), enabled: useMay()("listUsers") });
  const failure = useLastError(users);
  const [open, setOpen] = useState<Open>();
  const close = () => setOpen(undefined);
  return (
    <AccessPage
      title="Users"
      admin
      actions={
        <Button look="primary" data-add="users" onClick={() => setOpen({ what: "new" })}>
          <IconPlus size={16} aria-hidden="true" />
          New user
        </Button>
      }
    >
      {users.isPending && !failure ? (
        <SkeletonRows headed count={4} height={56} label="Loading users" />
      ) : users.data === undefined ? (
        <Failed error={failure} onRetry={users.refetch} />
      ) : users.data.length === 0 ? (
        <Empty icon={IconPerson} title="No users yet">
          <p>A user signs in with a password or with OpenID Connect, and has a role.</p>
        </Empty>
      ) : (
        <table className={table.table}>
          <thead>
            <tr>
              <th scope="col">User</th>
              <th scope="col">Role</th>
              <th scope="col">Last sign-in</th>
              <th scope="col">
                <span className="visually-hidden">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {users.data.map((user) => (
              <Row key={user.id} user={user} onOpen={(what) => setOpen({ what, user })} />
            ))}
          </tbody>
        </table>
      )}
      {open?.what === "new" && <NewUser onClose={close} />}
      {open?.what === "delete" && <DeleteUser user={open.user} onClose={close} />}
      {open?.what === "link" && <LinkFor user={open.user} onClose={close} />}
    </AccessPage>
  );
}

function Row({ user, onOpen }: { user: User; onOpen: (what: "delete" | "link") => void }) {
  const cache = useQueryClient();
  const toast = useToast();
  const change = useMutation({
    mutationFn: (edit: { role?: Role; disabled?: boolean }) => updateUser(user, edit),
    onError: (error) => toast(`${user.name} was not changed. ${reasonOf(error)}`, "failed"),
    onSettled: () => cache.invalidateQueries({ queryKey: accessKeys.users }),
  });
  const word = user.disabled ? "Enable" : "Disable";
  return (
    <tr>
      <td>
        <div className={table.name}>{user.name}</div>
        <div className={table.sub}>
          {[
            user.name !== user.email && user.email,
            user.issuer && `from ${user.issuer}`,
            !user.issuer && !user.hasPassword && "no password yet",
          ]
            .filter(Boolean)
            .join(" · ")}
        </div>
      </td>
      <td>
        <Select
          bare
          label={`Role of ${user.name}`}
          options={roles}
          value={(change.isPending && change.variables.role) || user.role}
          onChange={(role) => !change.isPending && change.mutate({ role })}
        />
      </td>
      <td data-label="Last sign-in">
        {user.disabled ? (
          <span className={table.bad}>Disabled</span>
        ) : user.signedInAt ? (
          <Ago at={user.signedInAt} />
        ) : (
          <span className={table.quiet}>Never</span>
        )}
      </td>
      <td>
        <div className={table.actions}>
          <Button
            look="quiet"
            iconOnly
            aria-label={`Sign-in link for ${user.name}`}
            title="Sign-in link"
            onClick={() => onOpen("link")}
          >
            <IconKey size={16} aria-hidden="true" />
          </Button>
          <Button
            look="quiet"
            iconOnly
            aria-label={`${word} ${user.name}`}
            title={word}
            busy={change.isPending}
            onClick={() => change.mutate({ disabled: !user.disabled })}
          >
            {user.disabled ? <IconPlay size={16} aria-hidden="true" /> : <IconPause size={16} aria-hidden="true" />}
          </Button>
          <Button
            look="quiet"
            iconOnly
            data-remove="users"
            aria-label={`Delete ${user.name}`}
            title="Delete"
            onClick={() => onOpen("delete")}
          >
            <IconTrash size={16} aria-hidden="true" />
          </Button>
        </div>
      </td>
    </tr>
  );
}

const fields = ["name", "email", "role", "password"] as const;

function NewUser({ onClose }: { onClose: () => void }) {
  const cache = useQueryClient();
  const toast = useToast();
  const form = useForm({ initialValues: { name: "", email: "", role: "operator" as Role, password: "" } });
  /** The user who was created, if the link was not. */
  const made = useRef<{ asked: string; id: string }>(undefined);
  const create = useServerForm({
    form,
    fields,
    send: async ({ password, ...user }: typeof form.values) => {
      const asked = JSON.stringify(user);
      if (password) await createUser({ ...user, password });
      else if (made.current?.asked !== asked) made.current = { asked, id: (await createUser(user)).id };
      return password ? undefined : await createLink(made.current?.id ?? "");
    },
    onSaved: (link) => {
      if (link !== undefined) return;
      toast(`${form.values.name} can sign in.`, "done");
      onClose();
    },
    onSettled: () => cache.invalidateQueries({ queryKey: accessKeys.users }),
  });
  if (create.answer) return <LinkShown name={form.values.name} link={create.answer} onClose={onClose} />;
  return (
    <FormDialog
      title="New user"
      action="Create user"
      busy={create.busy}
      once
      problem={create.problem}
      onClose={onClose}
      onSubmit={() => create.submit(form.values)}
    >
      <TextInput label="Name" autoComplete="off" {...form.getInputProps("name")} />
      <TextInput label="E-mail address" type="email" autoComplete="off" {...form.getInputProps("email")} />
      <Select
        label="Role"
        options={roles.map(({ value, label, may }) => ({ value, label: `${label}: ${may}` }))}
        {...form.getInputProps("role")}
      />
      <PasswordInput
        label="Password"
        description="Leave blank to get a one-time sign-in link instead"
        autoComplete="new-password"
        {...form.getInputProps("password")}
      />
    </FormDialog>
  );
}

function LinkShown({ name, link, onClose }: { name: string; link: string; onClose: () => void }) {
  return (
    <FormDialog title={`Sign-in link for ${name}`} onClose={onClose}>
      <p>Anyone who opens this link is signed in as {name}. It works once, within a day, and is not shown again.</p>
      <Secret>{link}</Secret>
    </FormDialog>
  );
}

function LinkFor({ user, onClose }: { user: User; onClose: () => void }) {
  const make = useMutation({ mutationFn: () => createLink(user.id) });
  if (make.data) return <LinkShown name={user.name} link={make.data} onClose={onClose} />;
  return (
    <FormDialog
      title={`Sign-in link for ${user.name}`}
      action="Create link"
      busy={make.isPending}
      once
      problem={make.error?.message}
      onSubmit={() => make.mutate()}
      onClose={onClose}
    >
      <p>For a user who has no password or has forgotten it. Setting a password invalidates the link.</p>
    </FormDialog>
  );
}

function DeleteUser({ user, onClose }: { user: User; onClose: () => void }) {
  return (
    <RemoveDialog
      title={`Delete ${user.name}?`}
      action="Delete user"
      remove={() => deleteUser(user.id)}
      done={`${user.name} was deleted.`}
      notDone={`${user.name} was not deleted.`}
      stale={accessKeys.users}
      onClose={onClose}
    >
      {user.name}, {roleLabel(user.role)}, is signed out immediately. Their entries in the audit log remain.
    </RemoveDialog>
  );
}
