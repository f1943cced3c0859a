import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, renderHook, waitFor } from "@testing-library/react";
import { expect, test } from "vitest";
import { useFirstQuiet } from "./prefetch";

/** The cache tells its observers in a task of its own. */
const notified = () => new Promise<void>((done) => setTimeout(done));

test("the first moment without a request is noticed, and no request renders the frame after it", async () => {
  const cache = new QueryClient();
  const answers: (() => void)[] = [];
  const request = () =>
    cache.fetchQuery({ queryKey: ["status"], queryFn: () => new Promise((done) => answers.push(() => done({}))) });
  let renders = 0;
  const first = request();
  const { result } = renderHook(
    () => {
      renders++;
      return useFirstQuiet(true);
    },
    { wrapper: ({ children }) => <QueryClientProvider client={cache}>{children}</QueryClientProvider> },
  );
  expect(result.current).toBe(false);
  await act(async () => {
    answers.pop()?.();
    await first;
  });
  await waitFor(() => expect(result.current).toBe(true));
  renders = 0;
  for (let poll = 0; poll < 3; poll++) {
    void request();
    await act(notified);
    answers.pop()?.();
    await act(notified);
  }
  expect(renders).toBe(0);
});
