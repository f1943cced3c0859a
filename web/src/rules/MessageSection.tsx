import { Checkbox, Input, TagsInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { memo } from "react";
import { roles } from "../api/access";
import { useMay } from "../api/operations";
import { teamNames } from "../api/teams";
import { webhookList } from "../api/webhooks";
import { Choice } from "../ui/Choice";
import { FormSection } from "../ui/Form";
import form from "../ui/form.module.css";
import { withKeys } from "../ui/variables";
import { severities } from "./choices";
import { defaultTexts } from "./definition";
import { bound, type Editor } from "./editor";
import styles from "./editor.module.css";
import { TemplateInput } from "./TemplateInput";
import { useAttributeKeys } from "./useAttributeKeys";

const recipients = [
  { value: "webhooks", label: "These webhooks" },
  { value: "policy", label: "The routing policy" },
] as const;

/** The texts, the severity and the addressees. */
export const MessageSection = memo(function MessageSection({ editor }: { editor: Editor }) {
  const { form: state, errorOf } = editor;
  const counts = state.values.fireMode !== "PER_EXCHANGE";
  const texts = defaultTexts(state.values);
  const { data: teams = [] } = useQuery(teamNames());
  const variables = withKeys(
    state.values.labels.map((label) => label.split("=")[0]?.trim() ?? "").filter(Boolean),
    useAttributeKeys(state.values.scope, true),
  );
  return (
    <FormSection
      title="Message"
      name="message"
      hint={
        <>
          {"Type {{ to pick a variable"}
          {counts && "; the exchange is the newest match"}. Leave blank to use the text shown in grey.
        </>
      }
    >
      <Input.Wrapper label="Severity" labelElement="div" error={errorOf("severity")}>
        <Choice
          label="Severity"
          options={severities}
          value={state.values.severity}
          onChange={(value) => state.setFieldValue("severity", value)}
        />
      </Input.Wrapper>
      <TemplateInput
        label="Title"
        placeholder={texts.title}
        variables={variables}
        value={state.values.titleTemplate}
        error={errorOf("titleTemplate")}
        onChange={(value) => state.setFieldValue("titleTemplate", value)}
      />
      <TemplateInput
        label="Message"
        lines
        placeholder={texts.message}
        variables={variables}
        value={state.values.messageTemplate}
        error={errorOf("messageTemplate")}
        onChange={(value) => state.setFieldValue("messageTemplate", value)}
      />
      <Input.Wrapper label="Who is notified" labelElement="div">
        <Choice
          label="Who is notified"
          options={recipients}
          value={state.values.useRoutingPolicy ? "policy" : "webhooks"}
          onChange={(value) => state.setFieldValue("useRoutingPolicy", value === "policy")}
        />
      </Input.Wrapper>
      {state.values.useRoutingPolicy ? (
        <p className={form.hint}>
          The <Link to="/routing">routing policy</Link> chooses the webhooks for each alert by its rule, severity and
          exchange.
        </p>
      ) : (
        <Webhooks editor={editor} counts={counts} />
      )}
      <fieldset className={styles.attributes}>
        <legend>Targets</legend>
        <p className={form.hint}>Whose inbox shows these alerts under “Mine”.</p>
        <div className={form.three}>
          <TagsInput label="People" placeholder="ada" {...bound(editor, "targets.user")} />
          <TagsInput label="Teams" placeholder="integration" data={teams} {...bound(editor, "targets.team")} />
          <TagsInput label="Roles" data={roles.map(({ value }) => value)} {...bound(editor, "targets.role")} />
        </div>
        {errorOf("targets") && <p className={styles.error}>{errorOf("targets")}</p>}
      </fieldset>
    </FormSection>
  );
});

function Webhooks({ editor, counts }: { editor: Editor; counts: boolean }) {
  const webhooks = useQuery(webhookList());
  const mayCreate = useMay()("createWebhook");
  if (webhooks.data?.length === 0) {
    return (
      <p>
        No webhooks yet.{" "}
        {mayCreate && (
          <>
            <Link to="/webhooks/new">Create one</Link>, or continue without one.{" "}
          </>
        )}
        Alerts still appear in the inbox.
      </p>
    );
  }
  return (
    <Checkbox.Group
      label="Webhooks"
      description={
        counts ? "These webhooks get messages as set under Trigger." : "These webhooks get a message for each exchange."
      }
      {...bound(editor, "webhookIds")}
    >
      <div className={styles.list}>
        {webhooks.data?.map((webhook) => (
          <Checkbox
            key={webhook.id}
            size="xs"
            value={webhook.id}
            label={`${webhook.name}${webhook.enabled ? "" : " (disabled)"}`}
          />
        ))}
        {webhooks.isError && webhooks.data === undefined && (
          <p className={styles.error}>
            The webhooks could not be loaded. The rule keeps its current ones. To choose others, reload the page.
          </p>
        )}
        {mayCreate && (
          <p className={form.hint}>
            Not listed? <Link to="/webhooks/new">Create a webhook</Link>; your changes here are kept as a draft.
          </p>
        )}
      </div>
    </Checkbox.Group>
  );
}
