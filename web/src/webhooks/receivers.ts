import type { Receiver, ReceiverRequest } from "../api/client";

/** The receivers that a search finds: each word of it is in the name, the id or what the receiver gets. */
export function found(receivers: readonly Receiver[], search: string): Receiver[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  return receivers.filter(({ id, name, about }) => {
    const text = `${id} ${name} ${about}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

/** An e-mail, as a request for a mail server holds it. */
export type Mail = { subject: string; text: string; html: string };

/** The e-mail that a request is; undefined where it is none. */
export function mailOf({ method, body }: Pick<ReceiverRequest, "method" | "body">): Mail | undefined {
  if (method !== "SMTP") return undefined;
  const { subject = "", text = "", html = "" } = JSON.parse(body) as Partial<Mail>;
  return { subject, text, html };
}

/** The URL behind the link of an input, undefined until the input that names the server is filled in. */
export function linkTarget(link: string | undefined, inputs: Readonly<Record<string, string>>): string | undefined {
  const [, name, path] = link?.match(/^\{\{input\.(\w+)\}\}(\/.*)$/) ?? [];
  if (name === undefined) return link;
  const server = (inputs[name] ?? "").trim().replace(/\/+$/, "");
  return /^https?:\/\/[^/]/.test(server) ? server + path : undefined;
}

/** A body for reading: JSON is indented, a form has a line for each field. */
export function readable({ body, contentType }: Pick<ReceiverRequest, "body" | "contentType">): string {
  if (contentType === "application/x-www-form-urlencoded") {
    return [...new URLSearchParams(body)].map(([name, value]) => `${name} = ${value}`).join("\n");
  }
  try {
    return JSON.stringify(JSON.parse(body), null, 2);
  } catch {
    return body;
  }
}
