import { MultiSelect, TagsInput, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { userList } from "../api/access";
import { assignees } from "../api/alerts";
import { useMay } from "../api/operations";
import { type Team, teamKeys, teamList, updateTeams } from "../api/teams";
import { webhookList } from "../api/webhooks";
import { Button } from "../ui/Button";
import { FormDialog } from "../ui/FormDialog";
import formStyles from "../ui/form.module.css";
import { IconPerson, IconPlus, IconSettings, IconTrash } from "../ui/icons";
import { useLastError } from "../ui/lastError";
import { RemoveDialog } from "../ui/RemoveDialog";
import { Empty, Failed, SkeletonRows } from "../ui/states";
import table from "../ui/table.module.css";
import { useServerForm } from "../ui/useServerForm";
import { listed } from "../ui/words";
import { AccessPage } from "./AccessPage";

type Open = { what: "edit"; team: Team | undefined } | { what: "delete"; team: Team };

/** The teams. Administrators edit them; viewers do not see the members. */
export function TeamsPage() {
  const may = useMay()("updateTeams");
  const teams = useQuery(teamList());
  const failure = useLastError(teams);
  const hidden = teams.data?.membersHidden === true;
  const { data: webhooks = [] } = useQuery(webhookList());
  const nameOf = (id: string) => webhooks.find((webhook) => webhook.id === id)?.name ?? "a webhook";
  const notUsers = useNotUsers();
  const [open, setOpen] = useState<Open>();
  const close = () => setOpen(undefined);
  return (
    <AccessPage
      title="Teams"
      settings
      actions={
        may && (
          <Button look="primary" data-add="teams" onClick={() => setOpen({ what: "edit", team: undefined })}>
            <IconPlus size={16} aria-hidden="true" />
            New team
          </Button>
        )
      }
    >
      {teams.isPending && !failure ? (
        <SkeletonRows headed count={3} height={56} label="Loading teams" />
      ) : teams.data === undefined ? (
        <Failed error={failure} onRetry={teams.refetch} />
      ) : teams.data.teams.length === 0 ? (
        <Empty icon={IconPerson} title="No teams yet">
          <p>
            A team owns the rules that name it as their owner. Its members see the alerts of these rules, and of rules
            that target the team, under “Mine”.
          </p>
        </Empty>
      ) : (
        <table className={table.table}>
          <thead>
            <tr>
              <th scope="col">Team</th>
              {!hidden && <th scope="col">Members</th>}
              {!hidden && <th scope="col">Groups</th>}
              <th scope="col">Escalations go to</th>
              {may && (
                <th scope="col">
                  <span className="visually-hidden">Actions</span>
                </th>
              )}
            </tr>
          </thead>
          <tbody>
            {teams.data.teams.map((team) => (
              <tr key={team.name}>
                <td>
                  <div className={table.name}>{team.name}</div>
                </td>
                {!hidden && (
                  <td data-label="Members">
                    {names(team.members)}
                    <NotUsers who={notUsers(team.members)} />
                  </td>
                )}
                {!hidden && <td data-label="Groups">{names(team.groups)}</td>}
                <td data-label="Escalations go to">{names(team.webhookIds?.map(nameOf))}</td>
                {may && (
                  <td>
                    <div className={table.actions}>
                      <Button
                        look="quiet"
                        iconOnly
                        aria-label={`Edit ${team.name}`}
                        title="Edit"
                        onClick={() => setOpen({ what: "edit", team })}
                      >
                        <IconSettings size={16} aria-hidden="true" />
                      </Button>
                      <Button
                        look="quiet"
                        iconOnly
                        data-remove="teams"
                        aria-label={`Delete ${team.name}`}
                        title="Delete"
                        onClick={() => setOpen({ what: "delete", team })}
                      >
                        <IconTrash size={16} aria-hidden="true" />
                      </Button>
                    </div>
                  </td>
                )}
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {open?.what === "edit" && teams.data && (
        <EditTeam version={teams.data.version} teams={teams.data.teams} team={open.team} onClose={close} />
      )}
      {open?.what === "delete" && teams.data && (
        <DeleteTeam version={teams.data.version} teams={teams.data.teams} team={open.team} onClose={close} />
      )}
    </AccessPage>
  );
}

function names(list: readonly string[] | undefined) {
  return list?.length ? list.join(", ") : <span className={table.quiet}>None</span>;
}

/** The members that no user has as an e-mail address. None while the users are not known. */
function useNotUsers(): (members: readonly string[] | undefined) => readonly string[] {
  const { data: users } = useQuery({ ...userList(), enabled: useMay()("listUsers") });
  const known = useMemo(() => users && new Set(users.map(({ email }) => email.toLowerCase())), [users]);
  return (members = []) => (known ? members.filter((member) => !known.has(member.trim().toLowerCase())) : []);
}

/** A user may still be created, or come from OpenID Connect: this is no error. */
function NotUsers({ who }: { who: readonly string[] }) {
  return who.length > 0 && <div className={table.sub}>Not a user yet: {listed(who)}</div>;
}

interface EditProps {
  /** The list when the dialog opened; the server refuses an edit of another version. */
  version: number;
  teams: readonly Team[];
  /** Undefined for a new team. */
  team: Team | undefined;
  onClose: () => void;
}

function EditTeam({ team, onClose, ...read }: EditProps) {
  const cache = useQueryClient();
  // The form does not take over changes that others make while it is open; the server then refuses
  // this edit.
  const [{ version, teams }] = useState(read);
  const { data: webhooks = [] } = useQuery(webhookList());
  const { data: people = [] } = useQuery({ ...assignees(), enabled: useMay()("listAssignees") });
  const notUsers = useNotUsers();
  const form = useForm({
    initialValues: {
      name: team?.name ?? "",
      members: team?.members ?? [],
      groups: team?.groups ?? [],
      webhookIds: team?.webhookIds ?? [],
    },
  });
  const place = team === undefined ? teams.length : teams.indexOf(team);
  const save = useServerForm({
    form,
    fields: [`teams[${place}].name`, `teams[${place}].members`, `teams[${place}].groups`, `teams[${place}].webhookIds`],
    path: (field) => field.slice(field.lastIndexOf(".") + 1),
    send: (values: Team) =>
      updateTeams(version, team === undefined ? [...teams, values] : teams.map((t) => (t === team ? values : t))),
    onSaved: onClose,
    onSettled: () => cache.invalidateQueries({ queryKey: teamKeys.all }),
  });
  const unknown = notUsers(form.values.members);
  return (
    <FormDialog
      title={team === undefined ? "New team" : `Edit ${team.name}`}
      action={team === undefined ? "Create team" : "Save"}
      busy={save.busy}
      problem={save.problem}
      onClose={onClose}
      onSubmit={() => save.submit(form.values)}
    >
      <TextInput
        label="Name"
        description="Rules with this name as their owner belong to the team."
        autoComplete="off"
        {...form.getInputProps("name")}
      />
      <TagsInput
        comboboxProps={{ withinPortal: false }}
        label="Members"
        description="E-mail addresses"
        data={people}
        {...form.getInputProps("members")}
      />
      <div role="status">
        {unknown.length > 0 && (
          <p className={formStyles.hint}>
            Not a user yet: {listed(unknown)}. People belong to the team from their first sign-in on.
          </p>
        )}
      </div>
      <TagsInput
        comboboxProps={{ withinPortal: false }}
        label="Groups"
        description="Groups of the OpenID Connect provider. Their members join the team at their next sign-in."
        {...form.getInputProps("groups")}
      />
      <MultiSelect
        comboboxProps={{ withinPortal: false }}
        label="Webhooks"
        description="Notified of alerts that escalate to the team"
        searchable
        hidePickedOptions
        data={webhooks.map(({ id, name }) => ({ value: id, label: name }))}
        {...form.getInputProps("webhookIds")}
      />
    </FormDialog>
  );
}

function DeleteTeam({ version, teams, team, onClose }: EditProps & { team: Team }) {
  return (
    <RemoveDialog
      title={`Delete ${team.name}?`}
      action="Delete team"
      remove={async () => {
        await updateTeams(
          version,
          teams.filter(({ name }) => name !== team.name),
        );
      }}
      done={`${team.name} was deleted.`}
      notDone={`${team.name} was not deleted.`}
      stale={teamKeys.all}
      onClose={onClose}
    >
      Rules owned by {team.name} keep this owner, but belong to no team until there is one with that name again.
    </RemoveDialog>
  );
}
