import { PasswordInput, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { type Me, setUp } from "../api/access";
import { Button } from "../ui/Button";
import { useFocusAtFirst } from "../ui/useFocusAtFirst";
import { useServerForm } from "../ui/useServerForm";
import styles from "./access.module.css";
import { Entrance } from "./Entrance";
import { useEntranceTitle } from "./useEntranceTitle";

const fields = ["code", "name", "email", "password"] as const;

/** The page while there is no administrator. Other people may have accounts and can sign in. */
export function SetUpPage({ onEnter, onSignIn }: { onEnter: (who: Me) => void; onSignIn: () => void }) {
  useEntranceTitle("Set up · Tocsin");
  const form = useForm({ initialValues: { code: "", name: "", email: "", password: "" } });
  const first = useFocusAtFirst<HTMLInputElement>();
  const make = useServerForm({ form, fields, send: setUp, onSaved: onEnter });
  return (
    <Entrance title="Set up Tocsin" problem={make.problem}>
      <p>There is no administrator yet. Create the first one with the code that Tocsin wrote to its log at startup.</p>
      <form
        className={styles.fields}
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          make.submit(form.values);
        }}
      >
        <TextInput
          label="Code"
          ref={first}
          description="Logged as set_up_code"
          autoComplete="off"
          spellCheck={false}
          {...form.getInputProps("code")}
        />
        <TextInput label="Your name" autoComplete="name" {...form.getInputProps("name")} />
        <TextInput label="E-mail address" type="email" autoComplete="username" {...form.getInputProps("email")} />
        <PasswordInput
          label="Password"
          description="At least 12 characters, for example a few words"
          autoComplete="new-password"
          {...form.getInputProps("password")}
        />
        <Button type="submit" look="primary" busy={make.busy}>
          Create administrator
        </Button>
      </form>
      <Button onClick={onSignIn}>Sign in instead</Button>
    </Entrance>
  );
}
