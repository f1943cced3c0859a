import { Checkbox } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import type { ExchangeRef, Rule, TestResult } from "../api/client";
import { reasonOf } from "../api/errors";
import { testRule } from "../api/rules";
import { Button } from "../ui/Button";
import { FormSection } from "../ui/Form";
import form from "../ui/form.module.css";
import { IconCopy, IconPending } from "../ui/icons";
import { took } from "../ui/time";
import { bound, type Editor } from "./editor";
import styles from "./editor.module.css";
import { useDuplicate } from "./useDuplicate";

interface Props {
  editor: Editor;
  /** The stored rule; none for a new one. */
  rule: Rule | undefined;
  dirty: boolean;
  exchange: ExchangeRef | undefined;
}

/** The effects of saving, and other actions on a rule. */
export function ReviewSection({ editor, rule, dirty, exchange }: Props) {
  return (
    <FormSection title="Review" name="review">
      <ul className={form.reasons}>
        {rule ? (
          <>
            <li>Alerts already raised do not change.</li>
            <li>Exchanges that ended before a change of scope or filter are not evaluated again.</li>
          </>
        ) : (
          <>
            <li>It applies to exchanges that end from now on.</li>
            <li>After creating it, you can send a test message from here.</li>
          </>
        )}
      </ul>
      <Checkbox
        size="xs"
        label="Enabled: raises alerts as soon as it is saved"
        {...bound(editor, "enabled", { type: "checkbox" })}
      />
      {rule && <Tries rule={rule} dirty={dirty} exchange={exchange} />}
    </FormSection>
  );
}

function Tries({ rule, dirty, exchange }: { rule: Rule; dirty: boolean; exchange: ExchangeRef | undefined }) {
  const navigate = useNavigate();
  const test = useMutation({ mutationFn: () => testRule(rule.id, exchange) });
  const duplicate = useDuplicate((copy) => navigate({ to: "/rules/$ruleId/edit", params: { ruleId: copy.id } }));
  const silent = rule.webhookIds.length === 0 && !rule.useRoutingPolicy;
  return (
    <>
      <div className={form.actions}>
        <Button disabled={silent} busy={test.isPending} onClick={() => test.mutate()}>
          <IconPending size={15} aria-hidden="true" />
          Send test message
        </Button>
        <Button busy={duplicate.isPending} onClick={() => duplicate.mutate(rule)}>
          <IconCopy size={15} aria-hidden="true" />
          Duplicate
        </Button>
      </div>
      {silent && <p className={form.hint}>The saved rule has no webhooks, so there is nothing to test.</p>}
      {!silent && dirty && <p className={form.hint}>Both use the saved rule, without your changes.</p>}
      <div aria-live="polite">
        {test.isError && <p className={styles.error}>{reasonOf(test.error)}</p>}
        {test.data && (
          <ul className={styles.results}>
            {test.data.map((result) => (
              <li key={result.webhookId}>{outcome(result)}</li>
            ))}
          </ul>
        )}
      </div>
    </>
  );
}

/** "#ops has it, after 84.2 ms." or the reason why not. */
function outcome({ webhookName, verdict, durationMs, statusCode, error, response }: TestResult): string {
  if (verdict === "DELIVERED") return `Delivered to ${webhookName} in ${took(durationMs)}.`;
  const why = error ?? (statusCode ? `status ${statusCode}${response ? `: ${response}` : ""}` : "no response");
  return `Not delivered to ${webhookName}: ${why}`;
}
