import type { Alert, WindowCount } from "../api/client";
import { duration, period } from "../ui/time";

/** `ConnectException` for `java.net.ConnectException`; a text that is not a dotted name is unchanged. */
export function shortType(type: string): string {
  return /^[\w$]+(\.[\w$]+)+$/.test(type) ? type.slice(type.lastIndexOf(".") + 1) : type;
}

/**
 * The text of an alert in a row, after its place. The row shows application and route already. So
 * the default title, which repeats them, is replaced by the error, and the default title of a count
 * by a shorter text. A title that a person has written is kept.
 */
export function headline(alert: Alert): { lead: string; text: string } {
  if (alert.count) return countHeadline(alert, alert.count);
  const { application = "", route = "", errorType = "", errorMessage = "" } = alert.exchange ?? {};
  if (alert.title && !alert.title.startsWith(`${application} · ${route}`)) {
    return { lead: "", text: firstLine(alert.title) };
  }
  if (errorType || errorMessage) return { lead: shortType(errorType), text: firstLine(errorMessage) };
  return { lead: "", text: firstLine(alert.message) || alert.title };
}

function countHeadline(alert: Alert, count: WindowCount): { lead: string; text: string } {
  const lead = countWords(count);
  if (!isDefaultTitle(alert.title, count)) return { lead, text: firstLine(alert.title) };
  const { errorType = "", errorMessage = "" } = alert.exchange ?? {};
  const error = [shortType(errorType), firstLine(errorMessage)].filter(Boolean).join(": ");
  // The lead already says what was expected.
  const isSaid = count.fireMode === "ABSENT_IN_WINDOW" && alert.message.startsWith("Expected: ");
  return { lead, text: error || (isSaid ? "" : firstLine(alert.message)) };
}

/** `7 / 5 within 10 min`: seven of the five that are needed. `25% / 10% within 10 min`, `p95 2.4 s / 2 s within 10 min`. */
export function countWords(count: WindowCount): string {
  if (count.fireMode === "ABSENT_IN_WINDOW") {
    const { observed, threshold } = count;
    const within = `within ${period(count.windowSeconds)}`;
    // At its end, an absence has what was expected, or more.
    if (observed >= threshold) return `${observed} ${within}, at least ${threshold} expected`;
    return `${observed} of ${threshold} expected ${within}`;
  }
  return `${valueWords(count)} / ${thresholdWords(count)} within ${period(count.windowSeconds)}`;
}

/** What was measured. */
export function valueWords({ fireMode, observed, threshold, value = 0, percentile }: WindowCount): string {
  if (fireMode === "RATIO_IN_WINDOW") return ratio(value, threshold);
  return fireMode === "DURATION_IN_WINDOW" ? `p${percentile} ${milliseconds(value)}` : `${observed}`;
}

/** The bound of the measurement. */
export function thresholdWords({ fireMode, threshold }: WindowCount): string {
  if (fireMode === "RATIO_IN_WINDOW") return percent(threshold, 3);
  return fireMode === "DURATION_IN_WINDOW" ? milliseconds(threshold) : `${threshold}`;
}

/**
 * A measured ratio: one decimal, or as many as its threshold has; three below 1%. It is cut and not rounded, so that what
 * is below the threshold looks as if it were.
 */
export function ratio(value: number, threshold: number): string {
  const exact = String(threshold).split(".")[1]?.length ?? 0;
  return percent(value, value < 1 ? 3 : Math.max(1, exact));
}

function percent(value: number, decimals: number): string {
  const scale = 10 ** decimals;
  return `${Math.floor(value * scale + 1e-6) / scale}%`;
}

const milliseconds = (count: number) => duration(String(Math.round(count * 1e6)));

/** Where an alert happened: the first text in its row, and the text beside it. */
export function place({ count, exchange, ruleName }: Alert): { first: string; second: string } {
  if (!count && exchange) return { first: exchange.application, second: exchange.route };
  const rule = ruleName || "deleted rule";
  if (!count?.group) return { first: rule, second: "" };
  const { group, groupByAttribute } = count;
  return { first: groupByAttribute ? `${groupByAttribute} ${group}` : group, second: rule };
}

/** Whether the title is the API's default title of a count, for a rule without its own title. */
function isDefaultTitle(title: string, { group, windowSeconds }: WindowCount): boolean {
  const rest = group && title.startsWith(`${group}: `) ? title.slice(group.length + 2) : title;
  const match =
    /^(?:\d+ exchanges?|[nN]o exchange|[\d.]+ ?% of \d+ exchanges match|p\d+ is .+ over \d+ exchanges) within (.+?)(, fewer than \d+)?(, without a name to group them by)?$/.exec(
      rest,
    );
  return title === "" || match?.[1] === period(windowSeconds);
}

function firstLine(text: string): string {
  return text.trim().split(/\r?\n/, 1)[0] ?? "";
}

/** The name of an alert in a message about it: its place, or its title. */
export function nameOf(alert: Alert): string {
  const { first, second } = place(alert);
  return [first, second].filter(Boolean).join(" · ") || headline(alert).text;
}
