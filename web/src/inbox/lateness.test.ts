import { expect, test } from "vitest";
import { latenessSentence, latenessWord } from "./lateness";

test.each([
  [{}, "", ""],
  [{ lateBySeconds: 0.4 }, "", "less than 1 s after the exchange ended"],
  [{ lateBySeconds: 59 }, "", "59 s after the exchange ended"],
  [
    { lateBySeconds: 180, late: true },
    "3 min late",
    "3 min after the exchange ended; the exchange became visible late",
  ],
])("%j", (alert, word, sentence) => {
  expect([latenessWord(alert), latenessSentence(alert)]).toEqual([word, sentence]);
});
