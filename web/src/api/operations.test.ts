import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { type Me, type Role, roles } from "./access";
import { leastRole, mayCall, type Operation } from "./operations";

/** The roles in the API's document, for all operations that not every reader may call. */
function documented(): Record<string, string> {
  const document = readFileSync("../api/openapi.yaml", "utf8");
  const operations = document.split(/^ {6}operationId: /m).slice(1);
  const found = operations.map((text) => [
    /^\w+/.exec(text)?.[0] ?? "",
    /^ {6}x-tocsin-role: (\w+)$/m.exec(text)?.[1] ?? "",
  ]);
  expect(found.length).toBeGreaterThan(50);
  return Object.fromEntries(found.filter(([, role]) => role !== "viewer" && role !== "anyone"));
}

test("what pages offer is what the API's document allows", () => {
  expect(leastRole).toEqual(documented());
});

test.each(roles.map(({ value }) => value))("a role may what it may, and not more: %s", (role: Role) => {
  const rank = (of: string) => roles.findIndex(({ value }) => value === of);
  for (const [operation, least] of Object.entries(documented())) {
    expect(mayCall({ role } as Me, operation as Operation), `${operation} by ${role}`).toBe(rank(role) >= rank(least));
    expect(mayCall(undefined, operation as Operation)).toBe(false);
  }
});
