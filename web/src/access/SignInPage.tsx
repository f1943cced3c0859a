import { PasswordInput, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { useMutation } from "@tanstack/react-query";
import { type Me, type SessionState, signIn } from "../api/access";
import { Button, buttonClass } from "../ui/Button";
import { useFocusAtFirst } from "../ui/useFocusAtFirst";
import styles from "./access.module.css";
import { Entrance } from "./Entrance";
import { useEntranceTitle } from "./useEntranceTitle";

/** The possible problems at a provider or on the way back, in words. */
const problems: Record<string, string> = {
  expired: "The sign-in took too long or started in another browser. Try again.",
  cancelled: "The provider refused the sign-in. Try again, or ask an administrator for help.",
  provider: "The provider is not available. See Tocsin's log for the reason.",
  unavailable: "The sign-in cannot be verified right now. Try again.",
  "not-admitted": "You do not have an account. Ask an administrator for one.",
  "email-taken": "An account with a password already uses your e-mail address. Ask an administrator for help.",
};

/** The problem of a person who has just been at a provider. */
export function signInProblem(): string | undefined {
  const kind = new URLSearchParams(globalThis.location.search).get("sign-in-problem");
  return kind === null ? undefined : (problems[kind] ?? problems.provider);
}

interface Props {
  state: SessionState;
  /** Whether a session has just ended. The page that was open waits behind this one. */
  ended: boolean;
  onEnter: (who: Me) => void;
}

export function SignInPage({ state, ended, onEnter }: Props) {
  useEntranceTitle("Sign in · Tocsin");
  const form = useForm({ initialValues: { email: "", password: "" } });
  const first = useFocusAtFirst<HTMLInputElement>();
  const enter = useMutation({ mutationFn: signIn, onSuccess: onEnter });
  const refused = signInProblem();
  const problem = enter.error ? enter.error.message : (state.problem ?? refused);
  const news = ended ? "Your session has ended. Sign in to continue where you left off." : undefined;
  const { pathname, search } = globalThis.location;
  return (
    <Entrance title="Sign in" problem={problem} news={news}>
      {state.provider && (
        <>
          <a
            className={buttonClass("primary")}
            href={`${state.provider.url}?return=${encodeURIComponent(refused ? pathname : pathname + search)}`}
          >
            Sign in with {state.provider.name}
          </a>
          <p className={styles.or}>or with a password</p>
        </>
      )}
      <form
        className={styles.fields}
        onSubmit={(event) => {
          event.preventDefault();
          enter.mutate(form.values);
        }}
      >
        <TextInput
          label="E-mail address"
          ref={first}
          type="email"
          name="email"
          autoComplete="username"
          required
          withAsterisk={false}
          {...form.getInputProps("email")}
        />
        <PasswordInput
          label="Password"
          name="password"
          autoComplete="current-password"
          required
          withAsterisk={false}
          {...form.getInputProps("password")}
        />
        <Button type="submit" look={state.provider ? "plain" : "primary"} busy={enter.isPending}>
          Sign in
        </Button>
      </form>
      <p className={styles.hint}>Forgot your password? Ask an administrator for a sign-in link.</p>
    </Entrance>
  );
}
