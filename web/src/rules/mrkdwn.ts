/** A part of a text in Slack's markup. */
export type Mark =
  | { kind: "text" | "code" | "block"; text: string }
  | { kind: "bold" | "italic" | "strike"; parts: Mark[] }
  | { kind: "link"; text: string; url: string };

const patterns: readonly { pattern: RegExp; make: (inner: string) => Mark }[] = [
  { pattern: /```([\s\S]*?)```/, make: (text) => ({ kind: "block", text: plain(text) }) },
  { pattern: /`([^`\n]+)`/, make: (text) => ({ kind: "code", text: plain(text) }) },
  { pattern: /<([^<>\n]+)>/, make: reference },
  { pattern: /(?<![\w*])\*([^*\n]+)\*(?![\w*])/, make: (text) => ({ kind: "bold", parts: mrkdwn(text) }) },
  { pattern: /(?<!\w)_([^_\n]+)_(?!\w)/, make: (text) => ({ kind: "italic", parts: mrkdwn(text) }) },
  { pattern: /(?<!\w)~([^~\n]+)~(?!\w)/, make: (text) => ({ kind: "strike", parts: mrkdwn(text) }) },
];

/** Parses Slack's mrkdwn, well enough to show what a message says. */
export function mrkdwn(text: string): Mark[] {
  const parts: Mark[] = [];
  for (let rest = text; rest !== ""; ) {
    const found = patterns
      .map(({ pattern, make }) => ({ match: pattern.exec(rest), make }))
      .filter(({ match }) => match !== null)
      .sort((a, b) => (a.match?.index ?? 0) - (b.match?.index ?? 0))[0];
    if (!found?.match) return [...parts, { kind: "text", text: plain(rest) }];
    const { match, make } = found;
    if (match.index > 0) parts.push({ kind: "text", text: plain(rest.slice(0, match.index)) });
    parts.push(make(match[1] ?? ""));
    rest = rest.slice(match.index + match[0].length);
  }
  return parts;
}

/** `https://…|words` is a link; for `!date^…|words` and similar, the words are shown. */
function reference(inner: string): Mark {
  const [target = "", words] = inner.split("|", 2);
  if (/^https?:|^mailto:/.test(target)) return { kind: "link", url: plain(target), text: plain(words ?? target) };
  return { kind: "text", text: plain(words ?? target) };
}

/** Slack escapes three characters, and no others. */
function plain(text: string): string {
  return text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
}
