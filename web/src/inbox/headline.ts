import type { Alert } from "../api/client";

/** `ConnectException` of `java.net.ConnectException`; what is no dotted name stays whole. */
export function shortType(type: string): string {
  return /^[\w$]+(\.[\w$]+)+$/.test(type) ? type.slice(type.lastIndexOf(".") + 1) : type;
}

/**
 * What a row says of an alert. The row names application and route already, so the default title, which repeats them,
 * gives way to the error; a title that a person has written stands.
 */
export function headline(alert: Alert): { lead: string; text: string } {
  const { application, route, errorType, errorMessage } = alert.exchange;
  if (alert.title && !alert.title.startsWith(`${application} · ${route}`)) {
    return { lead: "", text: firstLine(alert.title) };
  }
  if (errorType || errorMessage) return { lead: shortType(errorType), text: firstLine(errorMessage) };
  return { lead: "", text: firstLine(alert.message) || alert.title };
}

function firstLine(text: string): string {
  return text.trim().split(/\r?\n/, 1)[0] ?? "";
}
