import type { ReactNode } from "react";
import { type Mark, mrkdwn } from "./mrkdwn";
import styles from "./preview.module.css";

type Text = { type: string; text: string };
/** What a person has written of a body may leave anything out. */
type Element = { type: string; text?: string | Text; placeholder?: Text; alt_text?: string };
type Block = { type: string; text?: Text; fields?: Text[]; elements?: Element[] };

/** The blocks of a Slack message, plainly; undefined when the body has none. */
export function blocksOf(body: string): Block[] | undefined {
  try {
    const { blocks } = JSON.parse(body) as { blocks?: Block[] };
    return Array.isArray(blocks) && blocks.length > 0 ? blocks : undefined;
  } catch {
    return undefined;
  }
}

/** A message as Slack shows it, near enough: its words and their order are exact, Slack's look is not imitated. */
export function SlackMessage({ blocks }: { blocks: readonly Block[] }) {
  return (
    <div className={styles.slack}>
      {keyed(blocks).map(({ key, part }) => (
        <BlockView key={key} block={part} />
      ))}
    </div>
  );
}

function BlockView({ block }: { block: Block }): ReactNode {
  switch (block.type) {
    case "header":
      return <p className={styles.slackHeader}>{dotted(block.text?.text ?? "")}</p>;
    case "section":
      return (
        <div>
          {block.text && <Marked text={block.text} />}
          {block.fields && (
            <div className={styles.slackFields}>
              {keyed(block.fields).map(({ key, part }) => (
                <Marked key={key} text={part} />
              ))}
            </div>
          )}
        </div>
      );
    case "context":
      return (
        <div className={styles.slackContext}>
          {keyed(block.elements ?? []).map(({ key, part: { type, text, alt_text = "" } }) => (
            <Marked key={key} text={typeof text === "string" ? { type, text } : { type, text: alt_text }} />
          ))}
        </div>
      );
    case "actions":
      return (
        <div className={styles.slackActions}>
          {keyed(block.elements ?? []).map(({ key, part }) => (
            <span key={key} className={styles.slackButton}>
              {labelOf(part)}
              {part.type.endsWith("_select") && " ▾"}
            </span>
          ))}
        </div>
      );
    case "divider":
      return <hr />;
    default:
      return <p className={styles.quiet}>A block of type {block.type} is only shown in Slack.</p>;
  }
}

function labelOf({ type, text, placeholder }: Element): string {
  const label = text ?? placeholder;
  return (typeof label === "string" ? label : label?.text) ?? type;
}

function Marked({ text }: { text: Text }) {
  const parts: Mark[] = text.type === "mrkdwn" ? mrkdwn(text.text) : [{ kind: "text", text: text.text }];
  return <div className={styles.slackText}>{marks(parts)}</div>;
}

function marks(parts: readonly Mark[]): ReactNode[] {
  return keyed(parts).map(({ key, part }) => <MarkView key={key} mark={part} />);
}

function MarkView({ mark }: { mark: Mark }) {
  switch (mark.kind) {
    case "bold":
      return <strong>{marks(mark.parts)}</strong>;
    case "italic":
      return <em>{marks(mark.parts)}</em>;
    case "strike":
      return <s>{marks(mark.parts)}</s>;
    case "code":
      return <code>{mark.text}</code>;
    case "block":
      return <pre>{mark.text}</pre>;
    case "link":
      return (
        <span className={styles.slackLink} title={mark.url}>
          {mark.text}
        </span>
      );
    case "text":
      return <span>{dotted(mark.text)}</span>;
  }
}

const dots: Record<string, string> = { "🔴": "red", "🟠": "orange", "🔵": "blue", "🟢": "green", "⚪": "white" };

/** A text with its coloured circles drawn, because not every machine has a font with them. */
function dotted(text: string): ReactNode[] {
  return keyed(text.split(/([🔴🟠🔵🟢⚪])/u)).map(({ key, part }) =>
    dots[part] ? (
      <span
        key={key}
        role="img"
        aria-label={`${dots[part]} circle`}
        className={`${styles.dot} ${styles[dots[part]]}`}
      />
    ) : (
      part
    ),
  );
}

/** The parts of a message have no names but their places. */
function keyed<T>(parts: readonly T[]): { key: number; part: T }[] {
  return parts.map((part, key) => ({ key, part }));
}
