import { expect, test } from "vitest";
import { parseAddress, writeAddress } from "../ui/address";
import { parseSearch, toFilter, toRetry } from "./filter";

const id = "0192f0c1-0000-7000-8000-000000000001";
const none = {
  status: [],
  webhookId: [],
  ruleId: [],
  alertId: [],
  digestId: [],
  silenceId: [],
  digestOfSilenceId: [],
  hours: 0,
  q: "",
};
const read = (address: string) => toFilter(parseSearch(parseAddress(address)));

test.each([
  ["", none],
  [`?status=failed&status=pending&webhook=${id}`, { ...none, status: ["PENDING", "FAILED"], webhookId: [id] }],
  [`?silence=${id}`, { ...none, silenceId: [id] }],
  [`?digestsOf=${id}`, { ...none, digestOfSilenceId: [id] }],
  [`?rule=${id}&alert=${id}&digest=${id}`, { ...none, ruleId: [id], alertId: [id], digestId: [id] }],
  ["?within=24h", { ...none, hours: 24 }],
  ["?q=order%20lost", { ...none, q: "order lost" }],
  ["?status=lost&webhook=x&within=forever", none],
])("the address %j is read", (address, want) => {
  expect(read(address)).toEqual(want);
});

test("what is written is read back", () => {
  const address = `?status=failed&webhook=${id}&within=7d`;
  expect(writeAddress({ ...parseSearch(parseAddress(address)) })).toBe(address);
});

test.each([
  ["", ["FAILED", "EXHAUSTED"]],
  ["?status=retrying&status=delivered", ["RETRYING"]],
  ["?status=delivered", []],
  [`?digest=${id}`, []],
  [`?silence=${id}`, []],
  [`?digestsOf=${id}`, []],
  ["?status=failed&q=order", []],
])("a retry of all that match %j is meant for %j", (address, want) => {
  expect(toRetry(read(address))).toEqual(want);
});
