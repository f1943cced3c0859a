import { expect, test } from "vitest";
import { mrkdwn } from "./mrkdwn";

test.each([
  ["plain &lt;b&gt; &amp;lt;", [{ kind: "text", text: "plain <b> &lt;" }]],
  [
    "*Route*\norder-to-erp",
    [
      { kind: "bold", parts: [{ kind: "text", text: "Route" }] },
      { kind: "text", text: "\norder-to-erp" },
    ],
  ],
  ["```*not bold* &lt;x&gt;```", [{ kind: "block", text: "*not bold* <x>" }]],
  ["`a_b`", [{ kind: "code", text: "a_b" }]],
  ["snake_case_name 2*3*4", [{ kind: "text", text: "snake_case_name 2*3*4" }]],
  ["<https://t.example/a?b&amp;c|Open>", [{ kind: "link", url: "https://t.example/a?b&c", text: "Open" }]],
  ["<javascript:alert(1)|Open>", [{ kind: "text", text: "Open" }]],
  ["<!date^1^{date}|21 Nov>", [{ kind: "text", text: "21 Nov" }]],
  [
    "_so_ ~no~",
    [
      { kind: "italic", parts: [{ kind: "text", text: "so" }] },
      { kind: "text", text: " " },
      { kind: "strike", parts: [{ kind: "text", text: "no" }] },
    ],
  ],
])("%s", (text, want) => {
  expect(mrkdwn(text)).toEqual(want);
});
