import { PasswordInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { accessKeys, changePassword, type Me, me, roleLabel } from "../api/access";
import { Button } from "../ui/Button";
import { Form, FormSection } from "../ui/Form";
import formStyles from "../ui/form.module.css";
import { Ago } from "../ui/Instant";
import { useLastError } from "../ui/lastError";
import { Preferences } from "../ui/Preferences";
import { Failed, SkeletonForm } from "../ui/states";
import { useToast } from "../ui/toast";
import { useServerForm } from "../ui/useServerForm";
import { AccessPage } from "./AccessPage";
import styles from "./access.module.css";
import { useSignOut } from "./signOut";

export function AccountPage() {
  const who = useQuery(me());
  const failure = useLastError(who);
  return (
    <AccessPage title="Account">
      {who.data ? (
        <Account who={who.data} />
      ) : failure === null ? (
        <SkeletonForm label="Loading the account" />
      ) : (
        <Failed error={failure} onRetry={who.refetch} />
      )}
    </AccessPage>
  );
}

function Account({ who }: { who: Me }) {
  const signOut = useSignOut();
  return (
    <>
      <div className={formStyles.form}>
        <FormSection title="You">
          <dl className={styles.facts}>
            <dt>Name</dt>
            <dd>{who.name}</dd>
            {who.email && (
              <>
                <dt>E-mail</dt>
                <dd>{who.email}</dd>
              </>
            )}
            <dt>Role</dt>
            <dd>{roleLabel(who.role)}</dd>
            <dt>Tenant</dt>
            <dd>{who.tenant}</dd>
            {who.sessionExpiresAt && (
              <>
                <dt>Session ends</dt>
                <dd>
                  <Ago at={who.sessionExpiresAt} stop />
                </dd>
              </>
            )}
          </dl>
          <Preferences />
          {who.issuer && !who.hasPassword && (
            <p className={formStyles.hint}>You sign in with {who.issuer}, without a Tocsin password.</p>
          )}
          {who.kind === "open" ? (
            <p className={formStyles.hint}>Access is open on this machine. No sign-in is required.</p>
          ) : (
            <div>
              <Button onClick={() => signOut.mutate()} busy={signOut.isPending}>
                Sign out
              </Button>
            </div>
          )}
        </FormSection>
      </div>
      {who.kind === "user" && (who.hasPassword || !who.issuer) && <Password who={who} />}
    </>
  );
}

const fields = ["currentPassword", "newPassword"] as const;

function Password({ who }: { who: Me }) {
  const cache = useQueryClient();
  const toast = useToast();
  const form = useForm({ initialValues: { currentPassword: "", newPassword: "" } });
  const change = useServerForm({
    form,
    fields,
    send: changePassword,
    onSaved: (now) => {
      form.reset();
      cache.setQueryData<Me>(accessKeys.me, now);
      toast("Password changed. You are signed out everywhere else.", "done");
    },
  });
  return (
    <Form problems={change.problems} refusals={change.refusals} onSubmit={() => change.submit(form.values)}>
      <FormSection title={who.hasPassword ? "Change password" : "Set password"}>
        {who.hasPassword && (
          <PasswordInput
            label="Current password"
            autoComplete="current-password"
            {...form.getInputProps("currentPassword")}
          />
        )}
        <PasswordInput
          label="New password"
          description="At least 12 characters, for example a few words"
          autoComplete="new-password"
          {...form.getInputProps("newPassword")}
        />
      </FormSection>
      <div className={formStyles.actions}>
        <Button type="submit" look="primary" busy={change.busy}>
          Set password
        </Button>
      </div>
    </Form>
  );
}
