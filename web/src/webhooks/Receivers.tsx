import { PasswordInput, TextInput } from "@mantine/core";
import type { UseFormReturnType } from "@mantine/form";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useEffect, useRef, useState } from "react";
import type { Receiver, ReceiverInput, ReceiverRequest, Webhook } from "../api/client";
import { reasonOf } from "../api/errors";
import { receiverList, receiverPreview } from "../api/receivers";
import { Button } from "../ui/Button";
import { Choice } from "../ui/Choice";
import styles from "../ui/form.module.css";
import { useLastError } from "../ui/lastError";
import { Select } from "../ui/Select";
import { Failed, SkeletonRows } from "../ui/states";
import type { Values } from "./form";
import look from "./Receivers.module.css";
import { found, linkTarget, mailOf, readable } from "./receivers";

interface Props {
  form: UseFormReturnType<Values>;
  /** The webhook that is edited; none for a new one. */
  webhook?: Webhook;
}

/** The fields of a webhook for a receiver: which receiver, and its inputs. */
export function ReceiverFields({ form, webhook }: Props) {
  const receivers = useQuery(receiverList());
  const failure = useLastError(receivers);
  /** Whether the person has just moved between the gallery and a receiver: then the focus moves as well. */
  const moved = useRef(false);
  if (receivers.data === undefined) {
    return failure ? (
      <Failed error={failure} onRetry={receivers.refetch} />
    ) : (
      <SkeletonRows count={4} height={56} label="Loading the receivers" />
    );
  }
  const receiver = receivers.data.find(({ id }) => id === form.values.receiver);
  if (webhook && !receiver) {
    return (
      <p>
        The receiver “{webhook.preset?.name ?? form.values.receiver}” has been removed from this server. An operator can
        add it again.
      </p>
    );
  }
  if (!receiver) {
    return (
      <Gallery
        receivers={receivers.data}
        error={form.errors["preset.id"]}
        focused={moved.current}
        onChoose={(chosen) => {
          moved.current = true;
          form.setValues(begin(chosen));
        }}
      />
    );
  }
  return (
    <>
      {/* biome-ignore lint/a11y/useSemanticElements: it holds no fields of its own. */}
      <div
        role="group"
        aria-label="Chosen receiver"
        className={look.chosen}
        tabIndex={-1}
        ref={(element) => {
          if (!element || !moved.current) return;
          moved.current = false;
          element.focus();
        }}
      >
        <div>
          <span className={look.name}>{receiver.name}</span>
          <span className={look.about}>{receiver.about}</span>
          {receiver.docs && (
            <a href={receiver.docs} target="_blank" rel="noreferrer" className={look.about}>
              {receiver.name} documentation
            </a>
          )}
        </div>
        {!webhook && (
          <Button
            onClick={() => {
              moved.current = true;
              form.setFieldValue("receiver", "");
            }}
          >
            Choose another receiver
          </Button>
        )}
      </div>
      {receiver.inputs.map((input) => (
        <InputField key={input.name} input={input} form={form} isSet={isSet(input, webhook)} />
      ))}
      <Preview receiver={receiver} inputs={form.values.inputs} />
    </>
  );
}

/** The first content of the form for a receiver. */
function begin(receiver: Receiver): Partial<Values> {
  return {
    receiver: receiver.id,
    inputs: Object.fromEntries(receiver.inputs.map((input) => [input.name, input.default ?? ""])),
    openInputs: receiver.inputs.filter(({ secret }) => !secret).map(({ name }) => name),
    events: receiver.keyed ? [...receiver.events].sort() : [],
  };
}

const isSet = ({ name }: ReceiverInput, webhook: Webhook | undefined) =>
  webhook?.preset?.secretInputs.includes(name) ?? false;

function Gallery({
  receivers,
  error,
  focused,
  onChoose,
}: {
  receivers: readonly Receiver[];
  error: ReactNode;
  /** Whether the search gets the focus at first. */
  focused: boolean;
  onChoose: (receiver: Receiver) => void;
}) {
  const [search, setSearch] = useState("");
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (focused) field.current?.focus();
  }, [focused]);
  const shown = found(receivers, search);
  return (
    <div>
      <TextInput
        label="Search receivers"
        type="search"
        ref={field}
        error={error}
        value={search}
        onChange={(event) => setSearch(event.currentTarget.value)}
      />
      <ul className={look.gallery} aria-label="Receivers">
        {shown.map((receiver) => (
          <li key={receiver.id}>
            <button type="button" className={look.card} onClick={() => onChoose(receiver)}>
              <span className={look.name}>{receiver.name}</span>
              <span className={look.about}>{receiver.about}</span>
            </button>
          </li>
        ))}
      </ul>
      <p role="status" className={styles.hint}>
        {shown.length === 0 && "No matching receivers. Choose the kind Generic to send JSON to any URL."}
      </p>
    </div>
  );
}

interface InputFieldProps {
  input: ReceiverInput;
  form: UseFormReturnType<Values>;
  /** Whether a secret is already stored. */
  isSet: boolean;
}

function InputField({ input, form, isSet }: InputFieldProps) {
  const { name, label, help, link, type, secret, choices = [], required } = input;
  const value = form.values.inputs[name] ?? "";
  const target = linkTarget(link, form.values.inputs);
  const error = form.errors[`preset.inputs.${name}`];
  const set = (text: string) => form.setFieldValue("inputs", { ...form.values.inputs, [name]: text });
  if (type === "choice") {
    return (
      <Select
        label={label}
        {...(help ? { description: help } : {})}
        options={choices}
        value={value}
        error={error}
        onChange={set}
      />
    );
  }
  const common = {
    label: required ? label : `${label} (optional)`,
    description: (
      <>
        {help}
        {secret && " It is stored encrypted and never shown again."}
        {target && (
          <>
            {" "}
            <a href={target} target="_blank" rel="noreferrer">
              Where to find it
            </a>
          </>
        )}
      </>
    ),
    autoComplete: "off",
    spellCheck: false,
    value,
    error,
    onChange: (event: { currentTarget: { value: string } }) => set(event.currentTarget.value),
    ...(error ? { "aria-invalid": true } : {}),
    ...(isSet ? { placeholder: "Unchanged" } : {}),
  };
  return secret && type === "text" ? <PasswordInput {...common} /> : <TextInput {...common} />;
}

/** What is sent; for an e-mail its subject and both of its forms. */
function Body({ request }: { request: ReceiverRequest }) {
  const mail = mailOf(request);
  return (
    <>
      {mail && <p className={look.line}>Subject: {mail.subject}</p>}
      {/* Nothing runs in the frame, and nothing is loaded. */}
      {mail && <iframe className={look.mail} title="The e-mail as HTML" sandbox="" srcDoc={mail.html} />}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is reached by key. */}
      <pre className={look.body} tabIndex={0}>
        {mail ? mail.text : readable(request)}
      </pre>
    </>
  );
}

const typingPauseMs = 400;

const eventNames: Record<ReceiverRequest["event"], string> = {
  fired: "Fired",
  reminder: "Reminder",
  acknowledged: "Acknowledged",
  resolved: "Resolved",
  reopened: "Reopened",
  digest: "Digest",
};

/** What the receiver would get, made from the inputs that are not secret. */
function Preview({ receiver, inputs }: { receiver: Receiver; inputs: Record<string, string> }) {
  const [opened, setOpened] = useState(false);
  const open = JSON.stringify(
    Object.fromEntries(
      receiver.inputs.filter(({ secret }) => !secret).map(({ name }) => [name, (inputs[name] ?? "").trim()]),
    ),
  );
  const [asked, setAsked] = useState(open);
  useEffect(() => {
    const timer = setTimeout(() => setAsked(open), typingPauseMs);
    return () => clearTimeout(timer);
  }, [open]);
  return (
    <details className={styles.advanced} open={opened} onToggle={(event) => setOpened(event.currentTarget.open)}>
      <summary>Request preview</summary>
      {opened && <Requests receiver={receiver.id} inputs={JSON.parse(asked) as Record<string, string>} />}
    </details>
  );
}

function Requests({ receiver, inputs }: { receiver: string; inputs: Record<string, string> }) {
  const [event, setEvent] = useState<ReceiverRequest["event"]>("fired");
  const preview = useQuery(receiverPreview(receiver, inputs));
  const requests = preview.data?.requests ?? [];
  const request = requests.find((made) => made.event === event) ?? requests[0];
  if (preview.error) return <p role="alert">{reasonOf(preview.error)}</p>;
  if (!request) return <SkeletonRows count={3} height={28} label="Loading the preview" />;
  return (
    <div className={look.preview}>
      <Choice
        label="Event"
        options={requests.map((made) => ({ value: made.event, label: eventNames[made.event] }))}
        value={request.event}
        onChange={setEvent}
      />
      <p className={look.line}>
        {request.method} {request.url}
      </p>
      {request.headers.map(({ name, value, masked }) => (
        <p key={name} className={look.line}>
          {name}: {masked ? "••••••" : value}
        </p>
      ))}
      <Body request={request} />
      {request.cut.length > 0 && <p className={styles.hint}>Shortened to fit: {request.cut.join(", ")}</p>}
    </div>
  );
}
