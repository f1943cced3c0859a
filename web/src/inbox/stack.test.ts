import { expect, test } from "vitest";
import { readStack } from "./stack";

/** One letter for each part, with the number of lines of a folded run. */
const shape = (stack: string) =>
  readStack(stack)
    .map((part) => (part.kind === "library" ? `l${part.lines.length}` : part.kind[0]))
    .join(" ");

test("a Java stack: own frames stand out, library frames fold, causes start again", () => {
  const stack = [
    "org.apache.camel.CamelExecutionException: Exception occurred",
    "\tat org.apache.camel.CamelExecutionException.wrap(CamelExecutionException.java:45)",
    "\tat org.apache.camel.support.AbstractExchange.setException(AbstractExchange.java:602)",
    "Caused by: java.net.ConnectException: refused",
    "  Detail: port 8443",
    "\tat java.base/java.net.Socket.connect(Socket.java:751)",
    "\tat com.nordhaus.orders.client.ErpClient.post(ErpClient.java:88)",
    "\tat app//com.nordhaus.orders.Route.run(Route.java:29)",
    "\tat java.base/java.lang.Thread.run(Thread.java:1583)",
    "\t... 14 more",
    "",
  ].join("\r\n");
  expect(shape(stack)).toBe("e l2 c n l1 o o l2");
});

test("where a parser stopped in its input is no frame", () => {
  const stack = [
    "com.fasterxml.jackson.core.JsonParseException: Unexpected character",
    ' at [Source: {"qty":2,}; line: 81, column: 16]',
    "\tat com.fasterxml.jackson.core.JsonParser.parse(JsonParser.java:31)",
    "\tat com.nordhaus.shipping.Client.parse(Client.java:130)",
  ].join("\n");
  expect(shape(stack)).toBe("e n l1 o");
});

test("a Node stack", () => {
  const stack = `TypeError: x is undefined
    at load (/srv/app/src/load.ts:3:9)
    at async Layer.handle (/srv/app/node_modules/express/lib/layer.js:95:5)
    at node:internal/process/task_queues:95:5`;
  expect(shape(stack)).toBe("e o l2");
});

test("a Python stack", () => {
  const stack = `Traceback (most recent call last):
  File "/srv/app/orders.py", line 12, in run
    client.post()
  File "/usr/lib/python3.12/http/client.py", line 99, in post
ValueError: no`;
  expect(shape(stack)).toBe("e o n l1 n");
});

test("what is no stack is shown as it is", () => {
  expect(readStack("it broke")).toEqual([{ kind: "error", text: "it broke" }]);
});
