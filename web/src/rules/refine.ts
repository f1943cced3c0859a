import type { Alert } from "../api/client";
import { initialAttribute, type Values } from "./definition";

/** What an alert leads to: a rule that leaves its error out, or one that wants only exchanges with its value of an attribute. */
export interface Refinement {
  /** The alert. */
  alert: string;
  except?: "error";
  only?: string;
}

/** What the address of an editor says of a refinement. */
export function parseRefinement(search: Record<string, unknown>): Partial<Refinement> {
  const text = (name: string) => (typeof search[name] === "string" ? (search[name] as string) : undefined);
  const [alert, only] = [text("alert"), text("only")];
  if (alert === undefined) return {};
  if (search.except === "error") return { alert, except: "error" };
  return only === undefined ? {} : { alert, only };
}

/** What is refined, in words: "everything but this error", "only customer = 42". */
export function refinementWords({ exchange }: Pick<Alert, "exchange">, { only }: Refinement): string {
  return only === undefined ? "everything but this error" : `only ${only} = ${exchange?.attributes?.[only] ?? ""}`;
}

/** The values of a rule with a refinement. Where the rule says it already, nothing changes. */
export function refined(values: Values, alert: Pick<Alert, "exchange" | "errorPattern">, by: Refinement): Values {
  const filter = { ...values.filter };
  const including = (list: string[], text: string) => (list.includes(text) ? list : [...list, text]);
  if (by.only !== undefined) {
    const value = alert.exchange?.attributes?.[by.only];
    if (value === undefined) return values;
    const other = filter.attributes.filter(({ key, op, not }) => key !== by.only || op !== "EQUALS" || not);
    filter.attributes = [...other, { ...initialAttribute, key: by.only, value }];
  } else if (alert.errorPattern !== undefined) {
    filter.errorMessageNotMatches = including(filter.errorMessageNotMatches, alert.errorPattern);
  } else if (alert.exchange?.errorType) {
    filter.notErrorTypes = including(filter.notErrorTypes, alert.exchange.errorType);
  }
  return { ...values, filter };
}
