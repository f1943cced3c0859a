import { expect, test } from "vitest";
import { check } from "./check";
import { definition } from "./definition";
import { starters } from "./starters";

test.each(starters.map(({ name, values }) => [name, values] as const))("%s lacks nothing", (_, values) => {
  expect(check(definition(values))).toEqual([]);
});
