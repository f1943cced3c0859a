import type { Alert } from "../api/client";
import { initialAttribute, type Values } from "./values";

/** An alert can lead to a rule without its error, or to a rule for only exchanges with its value of an attribute. */
export interface Refinement {
  /** The alert. */
  alert: string;
  except?: "error";
  only?: string;
}

/** The parameters of a refinement in the address of an editor. */
export function parseRefinement(search: Record<string, unknown>): Partial<Refinement> {
  const text = (name: string) => (typeof search[name] === "string" ? (search[name] as string) : undefined);
  const [alert, only] = [text("alert"), text("only")];
  if (alert === undefined) return {};
  if (search.except === "error") return { alert, except: "error" };
  return only === undefined ? {} : { alert, only };
}

/** The refinement, in words: "everything but this error", "only customer = 42". */
export function refinementWords({ exchange }: Pick<Alert, "exchange">, { only }: Refinement): string {
  return only === undefined ? "everything but this error" : `only ${only} = ${exchange?.attributes?.[only] ?? ""}`;
}

/** The values of a rule with a refinement. If the rule already contains it, nothing changes. */
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
