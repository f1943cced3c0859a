import { screen } from "@testing-library/react";
import { http } from "msw";
import { expect, test } from "vitest";
import { anAlert, api, countsOf, open, problem, startWorld, streams } from "../test/world";

const { server } = startWorld();

test("tells why there is nothing to show, however many events come meanwhile", async () => {
  server.use(http.get(api("/alerts"), () => problem(500, { code: "internal", detail: "An unexpected error." })));
  open("/inbox?fold=none");
  const telling = setInterval(() => streams.at(-1)?.tell(countsOf([anAlert(1)])), 100);
  try {
    const shown = await screen.findByText("An unexpected error.", {}, { timeout: 20_000 });
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    expect(shown).toBeVisible();
  } finally {
    clearInterval(telling);
  }
});
