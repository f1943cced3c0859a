import type { Receiver, ReceiverRequest } from "../api/client";

/** The receivers that a search finds: each word of it stands in the name, the id or what the receiver gets. */
export function found(receivers: readonly Receiver[], search: string): Receiver[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  return receivers.filter(({ id, name, about }) => {
    const text = `${id} ${name} ${about}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
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
