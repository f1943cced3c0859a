import { TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { type Me, me } from "../api/access";
import type { ExchangeRef, Rule } from "../api/client";
import { mayCall } from "../api/operations";
import { webhookList } from "../api/webhooks";
import { Drafts } from "../drafts/Drafts";
import { draftsOf } from "../drafts/draft";
import { Page } from "../frame/Page";
import { Button, buttonClass } from "../ui/Button";
import { ConflictDialog } from "../ui/ConflictDialog";
import { Form, goTo } from "../ui/Form";
import formStyles from "../ui/form.module.css";
import { LeaveGuard } from "../ui/LeaveGuard";
import { useLastError } from "../ui/lastError";
import { useSplit } from "../ui/MasterDetail";
import { Failed, SkeletonColumns } from "../ui/states";
import { useToast } from "../ui/toast";
import { useHere } from "../ui/useHere";
import { differences, merged } from "./conflict";
import { DetailsSection } from "./DetailsSection";
import { DifferencePane } from "./DifferencePane";
import { definition } from "./definition";
import type { KeptRule } from "./drafts";
import { bound } from "./editor";
import styles from "./editor.module.css";
import { FilterSection } from "./FilterSection";
import { MessagePane, useCandidates } from "./MessagePane";
import { MessageSection } from "./MessageSection";
import { Overview } from "./Overview";
import { PreviewPane } from "./PreviewPane";
import { Proposed } from "./Proposed";
import { summary } from "./previewText";
import { ReviewSection } from "./ReviewSection";
import { ScopeSection } from "./ScopeSection";
import { Starters } from "./Starters";
import { recipientNames, sentence } from "./sentence";
import { TriggerSection } from "./TriggerSection";
import { useMessagePreview, useRuleDifference, useRulePreview } from "./usePreview";
import type { Proposal } from "./useRefined";
import { useEditor, useRuleForm } from "./useRuleForm";
import { valuesOf } from "./values";

/** The editor of a new or stored rule: its parts on one side, the effects on the other. */
export function RuleEditor({ rule, proposal }: { rule?: Rule; proposal?: Proposal }) {
  // Drafts belong to one person.
  const who = useQuery(me());
  const failure = useLastError(who);
  const [taken, setTaken] = useState<KeptRule>();
  const given = { ...(rule ? { rule } : {}), ...(proposal ? { proposal } : {}) };
  if (who.data) {
    return <Editing key={taken?.id} who={who.data} taken={taken} onTake={setTaken} {...given} />;
  }
  return (
    <Page title={rule ? rule.name : "New rule"} scrolls={failure !== null}>
      {failure === null ? <SkeletonColumns label="Loading" /> : <Failed error={failure} onRetry={who.refetch} />}
    </Page>
  );
}

interface EditingProps {
  who: Me;
  rule?: Rule;
  /** The draft that the person has chosen among several. */
  taken: KeptRule | undefined;
  onTake: (kept: KeptRule) => void;
  /** What an alert has filled in. */
  proposal?: Proposal;
}

function Editing({ who, rule, taken, onTake, proposal }: EditingProps) {
  const navigate = useNavigate();
  const toast = useToast();
  const mayWrite = mayCall(who, rule ? "updateRule" : "createRule");
  const leaving = useRef(false);
  const here = useHere();
  const warned = ({ warnings = [] }: Rule) => warnings.map((warning) => warning.message).join(" ");
  const edit = useRuleForm(rule, {
    person: draftsOf(who),
    taking: taken,
    proposed: proposal?.values,
    onCreated: (saved) => {
      leaving.current = true;
      const does = saved.enabled ? "was created" : "was created, but is disabled";
      toast(`“${saved.name}” ${does}. ${warned(saved)}`.trim(), "done");
      if (here()) void navigate({ to: "/rules", hash: saved.id });
    },
    onUpdated: (saved) => toast(`“${saved.name}” was saved. ${warned(saved)}`.trim(), "done"),
  });
  const split = useSplit();
  const { form, dirty, base, saving } = edit;
  const title = rule ? rule.name : "New rule";
  useEffect(() => {
    document.title = `${title} · Tocsin`;
  }, [title]);

  const webhooks = useQuery(webhookList()).data ?? [];
  const bindings = webhooks.filter(({ id }) => form.values.webhookIds.includes(id));
  const [hours, setHours] = useState(24);
  const preview = useRulePreview(form.values, hours);
  const difference = useRuleDifference(base, form.values, hours);
  const exchanges = useCandidates(form.values, preview);
  const [wanted, setWanted] = useState<{ webhookId?: string | undefined; exchange?: ExchangeRef | "" | undefined }>({});
  const newest = exchanges[0] && { executionId: exchanges[0].executionId, startTime: exchanges[0].startTime };
  const shown = {
    webhookId: (bindings.find(({ id }) => id === wanted.webhookId) ?? bindings[0])?.id,
    exchange: wanted.exchange === "" ? undefined : (wanted.exchange ?? newest),
  };
  const message = useMessagePreview(form.values, shown);
  const complaints = [
    ...preview.complaints,
    ...message.complaints.filter(({ field }) => field === "titleTemplate" || field === "messageTemplate"),
  ];
  const editor = useEditor(edit, complaints);

  const action = rule ? "Save rule" : "Create rule";
  const nameOf = (id: string) => webhooks.find((webhook) => webhook.id === id)?.name ?? "a webhook";
  const bindable = { ...form.values, webhookIds: bindings.map(({ id }) => id) };
  const said = sentence(definition(form.values), recipientNames(bindable, nameOf));

  return (
    <Page title={title}>
      <div className={styles.page}>
        <Overview said={said} editor={editor} />
        <div className={styles.editor}>
          <div className={styles.left}>
            <Form problems={edit.problems} refusals={edit.refusals} onSubmit={() => edit.submit(complaints)}>
              {rule?.unreadable && (
                <p className={formStyles.note} role="alert">
                  The stored definition cannot be read ({rule.unreadable}). The parts that cannot be read are empty
                  below. Saving replaces the definition, and the rule then applies to exchanges that end after that.
                </p>
              )}
              {!mayWrite && (
                <p className={formStyles.note}>You can view this rule. Editing requires the editor role.</p>
              )}
              <Drafts
                name={who.name}
                restored={edit.restored}
                onRestart={() => edit.restart(rule)}
                others={mayWrite ? edit.others : []}
                onTake={onTake}
                onGiveUp={edit.giveUp}
              />
              {proposal && !taken && dirty && (
                <Proposed
                  proposal={proposal}
                  isNew={!rule}
                  onSwitch={() => {
                    leaving.current = true;
                    edit.restart(rule);
                  }}
                />
              )}
              <fieldset className={styles.whole} disabled={!mayWrite || saving}>
                {!rule && !dirty && <Starters onChoose={(values) => form.setValues(values)} />}
                <TextInput label="Name" placeholder="Failed orders" {...bound(editor, "name")} />
                <ScopeSection editor={editor} />
                <FilterSection editor={editor} />
                <TriggerSection editor={editor} />
                <MessageSection editor={editor} />
                <DetailsSection editor={editor} />
                <ReviewSection editor={editor} rule={base} dirty={dirty} exchange={shown.exchange} />
              </fieldset>
              <div className={styles.bar}>
                {!split && preview.data && <p className={styles.summed}>{summary(preview.data)}</p>}
                <Button
                  type="submit"
                  look="primary"
                  busy={saving}
                  disabled={!mayWrite || (rule !== undefined && !dirty)}
                >
                  {saving ? "Saving…" : action}
                </Button>
                {rule ? (
                  <Link to="/rules/$ruleId" params={{ ruleId: rule.id }} className={buttonClass()}>
                    {dirty ? "Cancel" : "Back to the rule"}
                  </Link>
                ) : (
                  <Link to="/rules" className={buttonClass()}>
                    {dirty ? "Cancel" : "Back to the rules"}
                  </Link>
                )}
                <span className={styles.state} role="status">
                  {dirty &&
                    (edit.kept
                      ? `Unsaved changes, kept as a draft in this browser for ${who.name}.`
                      : "Unsaved changes. This browser cannot keep a draft: save before you leave.")}
                </span>
              </div>
            </Form>
          </div>
          <aside className={styles.right} aria-label="Preview">
            {difference.changed && <DifferencePane difference={difference} />}
            <PreviewPane
              preview={preview}
              hours={hours}
              onHours={setHours}
              onPick={(exchange) => {
                setWanted({ ...wanted, exchange });
                goTo("message-preview");
              }}
            />
            <MessagePane
              message={message}
              webhooks={bindings}
              exchanges={exchanges}
              shown={shown}
              onShown={({ webhookId, exchange }) => setWanted({ webhookId, exchange: exchange ?? "" })}
            />
          </aside>
        </div>
      </div>
      <LeaveGuard
        dirty={() => dirty && !leaving.current}
        losable={() => edit.losable && !leaving.current}
        keep="Save as draft"
        onLeave={() => edit.restart(rule)}
      >
        Your changes to “{form.values.name || "the new rule"}” have not been saved.
      </LeaveGuard>
      {edit.theirs && (
        <ConflictDialog
          what="rule"
          found={differences(
            edit.before,
            { theirs: valuesOf(edit.theirs), mine: form.values },
            (id) => webhooks.find((webhook) => webhook.id === id)?.name ?? id,
          )}
          onTake={(mine) =>
            edit.theirs && edit.take(merged({ theirs: valuesOf(edit.theirs), mine: form.values }, mine))
          }
          onClose={edit.closeConflict}
        />
      )}
    </Page>
  );
}
