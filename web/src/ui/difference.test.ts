import { expect, test } from "vitest";
import { differencesOf } from "./difference";

test.each<[string, object, object, object[]]>([
  ["nothing", { a: 1 }, { a: 1 }, []],
  ["null and absent are alike", { a: null }, {}, []],
  ["a value", { a: 1, b: 2 }, { a: 1, b: 3 }, [{ path: ["b"], was: 2, is: 3 }]],
  ["a value that came", {}, { name: "x" }, [{ path: ["name"], was: null, is: "x" }]],
  [
    "a list of words, by what came and left",
    { scope: { applications: ["orders", "billing"] } },
    { scope: { applications: ["customs", "orders"] } },
    [
      {
        path: ["scope", "applications"],
        was: ["orders", "billing"],
        is: ["customs", "orders"],
        added: ["customs"],
        removed: ["billing"],
      },
    ],
  ],
  [
    "a list that came as a whole",
    { s: {} },
    { s: { a: ["x"] } },
    [{ path: ["s", "a"], was: null, is: ["x"], added: ["x"], removed: [] }],
  ],
  [
    "a list of objects, as one value",
    { a: [{ k: 1 }] },
    { a: [{ k: 2 }] },
    [{ path: ["a"], was: [{ k: 1 }], is: [{ k: 2 }] }],
  ],
])("%s", (_, before, after, want) => {
  expect(differencesOf(before, after)).toEqual(want);
});
