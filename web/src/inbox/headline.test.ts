import { expect, test } from "vitest";
import type { WindowCount } from "../api/client";
import { anAlert } from "../test/world";
import { countWords, headline, place, shortType } from "./headline";

test.each([
  ["java.net.ConnectException", "ConnectException"],
  ["com.example.Outer$Inner", "Outer$Inner"],
  ["ValueError", "ValueError"],
  ["HTTP 502. Bad gateway", "HTTP 502. Bad gateway"],
  ["", ""],
])("%j is %j for short", (type, want) => {
  expect(shortType(type)).toBe(want);
});

test("the default title gives way to the first line of the error", () => {
  const alert = anAlert(1);
  alert.exchange.errorMessage = "\n ERP refused\r\n  Detail: no";
  expect(headline(alert)).toEqual({ lead: "ConnectException", text: "ERP refused" });
});

test("a title that a person wrote is kept", () => {
  expect(headline(anAlert(1, { title: "Order 4711 is stuck" }))).toEqual({ lead: "", text: "Order 4711 is stuck" });
});

test("without an error there is the message, and at last the title", () => {
  const alert = anAlert(1, { message: "took 31 s" });
  alert.exchange.errorType = "";
  alert.exchange.errorMessage = "";
  expect(headline(alert)).toEqual({ lead: "", text: "took 31 s" });
  expect(headline({ ...alert, message: "" })).toEqual({ lead: "", text: alert.title });
});

const count = { observed: 7, threshold: 5, windowSeconds: 600, groupBy: "ROUTE", group: "order-to-erp" } as const;

test("a count says how many of how many, and the newest error instead of its default title", () => {
  const alert = anAlert(1, { count, title: "order-to-erp: 7 exchanges within 10 min" });
  expect(countWords(count)).toBe("7 / 5 within 10 min");
  expect(headline(alert)).toEqual({ lead: "7 / 5 within 10 min", text: "ConnectException: ERP refused" });
  expect(headline({ ...alert, title: "Orders are stuck" }).text).toBe("Orders are stuck");
  expect(headline({ ...alert, title: "order-to-erp: 7 exchanges within 10 min of lunch" }).text).toMatch(/of lunch$/);
});

test("a ratio and a percentile say their values, and stand for their default titles", () => {
  const ratio: WindowCount = {
    ...{ observed: 15, threshold: 10, windowSeconds: 600, value: 12.5, volume: 120 },
    ...{ fireMode: "RATIO_IN_WINDOW", groupBy: "ROUTE", group: "order-to-erp" },
  };
  const slow: WindowCount = {
    ...{ observed: 9, threshold: 2000, windowSeconds: 600, value: 2412.5, volume: 120 },
    ...{ fireMode: "DURATION_IN_WINDOW", percentile: 95 },
  };
  expect(countWords(ratio)).toBe("12.5% / 10% within 10 min");
  expect(countWords({ ...ratio, value: 9.9999 })).toBe("9.9% / 10% within 10 min");
  expect(countWords({ ...ratio, value: 57.894736 })).toBe("57.8% / 10% within 10 min");
  expect(countWords({ ...ratio, value: 2.34567, threshold: 2.345 })).toBe("2.345% / 2.345% within 10 min");
  expect(countWords({ ...ratio, value: 0.0214 })).toBe("0.021% / 10% within 10 min");
  expect(countWords(slow)).toBe("p95 2.41 s / 2 s within 10 min");
  const error = "ConnectException: ERP refused";
  const ratioTitle = "order-to-erp: 12.5% of 120 exchanges match within 10 min";
  expect(headline(anAlert(1, { count: ratio, title: ratioTitle })).text).toBe(error);
  // Alerts of earlier versions keep their titles.
  expect(headline(anAlert(1, { count: ratio, title: ratioTitle.replace("%", " %") })).text).toBe(error);
  expect(headline(anAlert(1, { count: slow, title: "p95 is 2.412 s over 120 exchanges within 10 min" })).text).toBe(
    error,
  );
  expect(headline(anAlert(1, { count: slow, title: "Orders are slow" })).text).toBe("Orders are slow");
});

test("an absence says what is missing", () => {
  const missing: WindowCount = {
    ...{ observed: 0, threshold: 1, windowSeconds: 600, fireMode: "ABSENT_IN_WINDOW" },
    ...{ groupBy: "ROUTE", group: "stock-level-push" },
  };
  expect(countWords(missing)).toBe("0 of 1 expected within 10 min");
  expect(countWords({ ...missing, observed: 4 })).toBe("4 within 10 min, at least 1 expected");
  const { exchange: _, ...alert } = anAlert(1, {
    count: missing,
    title: "stock-level-push: no exchange within 10 min",
    message: "Expected: at least 1 within 10 min.",
  });
  expect(headline(alert).text).toBe("");
  expect(headline({ ...alert, title: "Stock levels are missing" }).text).toBe("Stock levels are missing");
  const few = "stock-level-push: 3 exchanges within 10 min, fewer than 5";
  expect(headline({ ...alert, title: few, count: { ...missing, observed: 3, threshold: 5 } }).text).toBe("");
});

test("a count of which no exchange is known says its message", () => {
  const { exchange: _, ...alert } = anAlert(1, {
    count: { observed: 1, threshold: 1, windowSeconds: 45 },
    title: "1 exchange within 45 s",
    message: "The threshold of 1 within 45 s was reached.",
  });
  expect(headline(alert)).toEqual({ lead: "1 / 1 within 45 s", text: "The threshold of 1 within 45 s was reached." });
  expect(place(alert)).toEqual({ first: "Failed orders", second: "" });
});

test("the place of a count is its group, and its rule", () => {
  expect(place(anAlert(1, { count }))).toEqual({ first: "order-to-erp", second: "Failed orders" });
  const customer = { ...count, groupBy: "ATTRIBUTE", groupByAttribute: "customer", group: "7" } as const;
  expect(place(anAlert(1, { count: customer }))).toEqual({ first: "customer 7", second: "Failed orders" });
  expect(place(anAlert(1))).toEqual({ first: "orders", second: "order-to-erp" });
});
