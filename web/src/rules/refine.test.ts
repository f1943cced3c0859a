import { expect, test } from "vitest";
import { anAlert } from "../test/world";
import { parseRefinement, refined, refinementWords } from "./refine";
import { initialAttribute, initialValues, type Values } from "./values";

const alert = (over: { errorType?: string; errorPattern?: string; attributes?: Record<string, string> } = {}) => {
  const { errorPattern, ...exchange } = over;
  const made = anAlert(5, { id: "a1" });
  return {
    ...made,
    ...(errorPattern === undefined ? {} : { errorPattern }),
    exchange: { ...made.exchange, ...exchange } as NonNullable<typeof made.exchange>,
  };
};
const filter = (over: Partial<Values["filter"]>): Values => ({
  ...initialValues,
  filter: { ...initialValues.filter, ...over },
});

test("an error is left out by its message, or by its type where it has none, and only once", () => {
  const known = filter({ errorMessageNotMatches: ["^a"], notErrorTypes: ["X"] });
  const by = { alert: "a1", except: "error" } as const;
  const once = refined(known, alert({ errorPattern: "^b", errorType: "Y" }), by);
  expect(once.filter).toEqual({ ...known.filter, errorMessageNotMatches: ["^a", "^b"] });
  expect(refined(once, alert({ errorPattern: "^b" }), by)).toEqual(once);
  expect(refined(known, alert({ errorType: "Y" }), by).filter.notErrorTypes).toEqual(["X", "Y"]);
});

test("a value of an attribute replaces another one, and no other condition", () => {
  const other = { ...initialAttribute, key: "customer", not: true, value: "9" };
  const known = filter({ attributes: [{ ...initialAttribute, key: "customer", value: "1" }, other] });
  const by = { alert: "a1", only: "customer" };
  const made = refined(known, alert({ attributes: { customer: "42" } }), by);
  expect(made.filter.attributes).toEqual([other, { ...initialAttribute, key: "customer", value: "42" }]);
  expect(refined(known, alert({ attributes: {} }), by)).toEqual(known);
  expect(refinementWords(alert({ attributes: { customer: "42" } }), by)).toBe("only customer = 42");
});

test.each([
  [{}, {}],
  [{ except: "error" }, {}],
  [{ alert: "a" }, {}],
  [{ alert: "a", except: "other" }, {}],
  [{ alert: ["a", "b"], only: "k" }, {}],
  [
    { alert: "a", except: "error", only: "k" },
    { alert: "a", except: "error" },
  ],
  [
    { alert: "a", only: "k", more: "x" },
    { alert: "a", only: "k" },
  ],
])("the address %j means %j", (search, want) => {
  expect(parseRefinement(search)).toEqual(want);
});
