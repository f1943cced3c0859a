import { expect, test } from "vitest";
import { anAlert } from "../test/world";
import { headline, shortType } from "./headline";

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

test("a title that a person wrote stands", () => {
  expect(headline(anAlert(1, { title: "Order 4711 is stuck" }))).toEqual({ lead: "", text: "Order 4711 is stuck" });
});

test("without an error there is the message, and at last the title", () => {
  const alert = anAlert(1, { message: "took 31 s" });
  alert.exchange.errorType = "";
  alert.exchange.errorMessage = "";
  expect(headline(alert)).toEqual({ lead: "", text: "took 31 s" });
  expect(headline({ ...alert, message: "" })).toEqual({ lead: "", text: alert.title });
});
