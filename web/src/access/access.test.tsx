import { screen, waitFor, within } from "@testing-library/react";
import { HttpResponse, http } from "msw";
import { expect, onTestFinished, test } from "vitest";
import { me, session } from "../api/access";
import { body, client } from "../api/client";
import { api, open, problem, startWorld } from "../test/world";

const { server } = startWorld();

const ada = { kind: "user", id: "u1", name: "Ada", email: "ada@example.com", role: "admin", tenant: "default" };
const signedOut = (change = {}) =>
  http.get(api("/session"), () => HttpResponse.json({ signedIn: false, open: false, setupNeeded: false, ...change }));

test("one signs in, and is where one wanted to go", async () => {
  server.use(
    signedOut(),
    http.post(api("/session"), async ({ request }) => {
      const { password } = (await request.json()) as { password: string };
      return password === "right"
        ? HttpResponse.json(ada)
        : problem(401, { code: "unauthorized", detail: "The e-mail address or the password is wrong" });
    }),
  );
  const { user } = open("/webhooks");
  await user.type(await screen.findByLabelText("E-mail address"), "ada@example.com");
  await user.type(screen.getByLabelText("Password"), "wrong");
  await user.click(screen.getByRole("button", { name: "Sign in" }));
  expect(await screen.findByRole("alert")).toHaveTextContent("The e-mail address or the password is wrong");
  await user.clear(screen.getByLabelText("Password"));
  await user.type(screen.getByLabelText("Password"), "right");
  await user.click(screen.getByRole("button", { name: "Sign in" }));
  expect(await screen.findByRole("heading", { name: "Webhooks" })).toBeVisible();
  expect(screen.queryByRole("heading", { name: "Sign in" })).toBeNull();
});

test("when the session ends, what was typed waits behind the sign-in", async () => {
  server.use(
    http.post(api("/webhooks"), () => problem(401, { code: "unauthorized", detail: "The session is over" })),
    http.post(api("/session"), () => HttpResponse.json(ada)),
  );
  const { user } = open("/webhooks/new");
  await user.type(await screen.findByLabelText("Name"), "Half a webhook");
  await user.click(screen.getByRole("button", { name: "Create webhook" }));
  expect(await screen.findByRole("heading", { name: "Sign in" })).toBeVisible();
  expect(screen.getByText("Your session has ended. Sign in to continue where you left off.")).toBeVisible();
  await user.type(screen.getByLabelText("E-mail address"), "ada@example.com");
  await user.type(screen.getByLabelText("Password"), "right");
  await user.click(screen.getByRole("button", { name: "Sign in" }));
  expect(await screen.findByLabelText("Name")).toHaveValue("Half a webhook");
  expect(document.title).toBe("New webhook · Tocsin");
});

test.each([
  ["the same person", "u1", "ci"],
  ["another person", "u2", ""],
])("who comes back to a tab and has signed in in another one, as %s, need not do so again", async (_, id, kept) => {
  let who: string | undefined = "u1";
  const ended = () => problem(401, { code: "unauthorized", detail: "The session is over" });
  server.use(
    http.get(api("/tokens"), () => HttpResponse.json({ items: [] })),
    http.post(api("/tokens"), ended),
    http.get(api("/session"), () =>
      HttpResponse.json({ signedIn: who !== undefined, open: false, setupNeeded: false }),
    ),
    http.get(api("/me"), () => HttpResponse.json({ ...ada, id: who })),
  );
  const { user } = open("/tokens");
  await user.click(await screen.findByRole("button", { name: "New token" }));
  await user.type(await screen.findByLabelText("Name"), "ci");
  who = undefined;
  await user.click(screen.getByRole("button", { name: "Create token" }));
  await screen.findByRole("heading", { name: "Sign in" });
  globalThis.dispatchEvent(new Event("focus"));
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(screen.getByRole("heading", { name: "Sign in" })).toBeVisible();
  who = id;
  globalThis.dispatchEvent(new Event("focus"));
  await screen.findByRole("heading", { name: "Tokens" });
  expect((screen.queryByLabelText("Name") as HTMLInputElement | null)?.value ?? "").toBe(kept);
});

test("when somebody else signs in in another tab, they do not see what was typed here", async () => {
  let id = "u1";
  server.use(
    http.get(api("/tokens"), () => HttpResponse.json({ items: [] })),
    http.get(api("/me"), () => HttpResponse.json({ ...ada, id })),
  );
  const { user, cache } = open("/tokens");
  await user.click(await screen.findByRole("button", { name: "New token" }));
  await user.type(await screen.findByLabelText("Name"), "ci");
  await cache.refetchQueries({ queryKey: me().queryKey });
  expect(screen.getByLabelText("Name")).toHaveValue("ci");
  id = "u2";
  await cache.refetchQueries({ queryKey: me().queryKey });
  await waitFor(() => expect(screen.queryByLabelText("Name")).toBeNull());
  expect(await screen.findByRole("heading", { name: "Tokens" })).toBeVisible();
});

test("an answer to a request from before the sign-in does not end the new session", async () => {
  let answer = () => {};
  const answered = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const over = () => problem(401, { code: "unauthorized", detail: "The session is over" });
  server.use(
    http.get(api("/tokens"), over, { once: true }),
    http.get(api("/webhooks"), async () => {
      await answered;
      return over();
    }),
    http.post(api("/session"), () => HttpResponse.json(ada)),
    http.get(api("/tokens"), () => HttpResponse.json({ items: [] })),
  );
  const { user, cache } = open("/tokens");
  const late = cache.fetchQuery({ queryKey: ["late"], queryFn: () => body(client.GET("/webhooks")), retry: false });
  await user.type(await screen.findByLabelText("E-mail address"), "ada@example.com");
  await user.type(screen.getByLabelText("Password"), "right");
  await user.click(screen.getByRole("button", { name: "Sign in" }));
  await screen.findByRole("heading", { name: "No API tokens yet" });
  answer();
  await expect(late).rejects.toThrow("The session is over");
  expect(cache.getQueryData(session().queryKey)).toMatchObject({ signedIn: true });
});

test("a dialog that is open when the session ends does not lie over the sign-in, and is there afterwards", async () => {
  server.use(
    http.get(api("/tokens"), () => HttpResponse.json({ items: [] })),
    http.post(api("/tokens"), () => problem(401, { code: "unauthorized", detail: "The session is over" })),
    http.post(api("/session"), () => HttpResponse.json(ada)),
  );
  const { user } = open("/tokens");
  await user.click(await screen.findByRole("button", { name: "New token" }));
  await user.type(await screen.findByLabelText("Name"), "ci");
  await user.click(screen.getByRole("button", { name: "Create token" }));
  await screen.findByRole("heading", { name: "Sign in" });
  expect(document.querySelector("dialog[open]")).toBeNull();
  // No key opens another one behind the sign-in.
  screen.getByLabelText("E-mail address").blur();
  await user.keyboard("?");
  expect(document.querySelectorAll("dialog")).toHaveLength(1);
  await user.type(screen.getByLabelText("E-mail address"), "ada@example.com");
  await user.type(screen.getByLabelText("Password"), "right");
  await user.click(screen.getByRole("button", { name: "Sign in" }));
  const dialog = within(await screen.findByRole("dialog", { name: "New token" }));
  expect(dialog.getByLabelText("Name")).toHaveValue("ci");
});

test("a screen is signed in by the token in its address, before it asks who is", async () => {
  let accepted: unknown;
  server.use(
    http.post(api("/session/display"), async ({ request }) => {
      accepted = await request.json();
      return new HttpResponse(null, { status: 204 });
    }),
    http.get(api("/session"), () =>
      HttpResponse.json({ signedIn: accepted !== undefined, open: false, setupNeeded: false }),
    ),
  );
  globalThis.history.replaceState(null, "", "/wall#tcn_abc");
  onTestFinished(() => globalThis.history.replaceState(null, "", "/"));
  open("/wall");
  expect(await screen.findByRole("heading", { name: "Firing alerts" })).toBeInTheDocument();
  expect(accepted).toEqual({ token: "tcn_abc" });
  expect(globalThis.location.hash).toBe("");
});

test("a screen whose token is refused says so", async () => {
  server.use(
    signedOut(),
    http.post(api("/session/display"), () => problem(401, { code: "unauthorized", detail: "The token was revoked" })),
  );
  globalThis.history.replaceState(null, "", "/wall#tcn_abc");
  onTestFinished(() => globalThis.history.replaceState(null, "", "/"));
  open("/wall");
  expect(await screen.findByRole("alert")).toHaveTextContent("The token was revoked");
});

test.each([
  ["does not answer", () => HttpResponse.error()],
  ["has no database", () => problem(503, { code: "unavailable" })],
])("a screen that is switched on while Tocsin %s uses its token afterwards", async (_, answer) => {
  let tries = 0;
  let isSignedIn = false;
  server.use(
    http.post(api("/session/display"), () => {
      tries += 1;
      if (tries === 1) return answer();
      isSignedIn = true;
      return new HttpResponse(null, { status: 204 });
    }),
    http.get(api("/session"), () =>
      tries === 1 ? answer() : HttpResponse.json({ signedIn: isSignedIn, open: false, setupNeeded: false }),
    ),
  );
  globalThis.history.replaceState(null, "", "/wall#tcn_abc");
  onTestFinished(() => globalThis.history.replaceState(null, "", "/"));
  open("/wall");
  expect(await screen.findByRole("heading", { name: "Firing alerts" })).toBeInTheDocument();
  expect(isSignedIn).toBe(true);
});

test("a sign-in link that Tocsin could not answer is used again", async () => {
  let tries = 0;
  server.use(
    http.post(api("/session/link"), async ({ request }) => {
      tries += 1;
      expect(await request.json()).toEqual({ secret: "once" });
      return tries === 1 ? HttpResponse.error() : HttpResponse.json(ada);
    }),
    http.get(api("/session"), () =>
      tries === 1 ? HttpResponse.error() : HttpResponse.json({ signedIn: tries > 1, open: false, setupNeeded: false }),
    ),
  );
  globalThis.history.replaceState(null, "", "/sign-in#once");
  onTestFinished(() => globalThis.history.replaceState(null, "", "/"));
  open("/inbox");
  expect(await screen.findByRole("heading", { name: "Inbox" })).toBeInTheDocument();
  expect(tries).toBe(2);
});

test("the first administrator is made with the code of the log", async () => {
  let sent: unknown;
  server.use(
    signedOut({ setupNeeded: true }),
    http.post(api("/setup"), async ({ request }) => {
      const first = sent === undefined;
      sent = await request.json();
      return first
        ? problem(400, { errors: [{ field: "code", code: "refused", message: "Not a valid code" }] })
        : HttpResponse.json(ada);
    }),
  );
  const { user } = open("/inbox");
  expect(await screen.findByLabelText("Code")).toHaveFocus();
  await user.type(screen.getByLabelText("Code"), "aaaa");
  await user.type(screen.getByLabelText("Your name"), "Ada");
  await user.type(screen.getByLabelText("E-mail address"), "ada@example.com");
  await user.type(screen.getByLabelText("Password"), "a long password");
  await user.click(screen.getByRole("button", { name: "Create administrator" }));
  expect(await screen.findByText("Not a valid code")).toBeVisible();
  await user.click(screen.getByRole("button", { name: "Create administrator" }));
  expect(await screen.findByRole("navigation", { name: "Tocsin" })).toBeVisible();
  expect(sent).toEqual({ code: "aaaa", name: "Ada", email: "ada@example.com", password: "a long password" });
});

test("who has an account signs in while there is no administrator", async () => {
  server.use(
    signedOut({ setupNeeded: true, provider: { name: "Example", url: "/api/auth/oidc/start" } }),
    http.post(api("/session"), () => HttpResponse.json({ ...ada, role: "viewer" })),
  );
  const { user } = open("/inbox");
  await user.click(await screen.findByRole("button", { name: "Sign in instead" }));
  expect(await screen.findByRole("link", { name: "Sign in with Example" })).toBeVisible();
  await user.type(screen.getByLabelText("E-mail address"), "ada@example.com");
  await user.type(screen.getByLabelText("Password"), "right");
  await user.click(screen.getByRole("button", { name: "Sign in" }));
  expect(await screen.findByRole("navigation", { name: "Tocsin" })).toBeVisible();
});

test("a provider comes first, and knows where to return to", async () => {
  server.use(signedOut({ provider: { name: "Example", url: "/api/auth/oidc/start" } }));
  open("/rules");
  const link = await screen.findByRole("link", { name: "Sign in with Example" });
  expect(link).toHaveAttribute("href", expect.stringMatching(/^\/api\/auth\/oidc\/start\?return=%2F/));
});

test.each([
  ["unavailable", "The sign-in cannot be verified right now. Try again."],
  ["provider", "The provider is not available. See Tocsin's log for the reason."],
])("an error of a provider is shown: %s", async (kind, words) => {
  globalThis.history.replaceState(null, "", `/?sign-in-problem=${kind}`);
  onTestFinished(() => globalThis.history.replaceState(null, "", "/"));
  server.use(signedOut({ setupNeeded: true, provider: { name: "Example", url: "/api/auth/oidc/start" } }));
  open("/");
  expect(await screen.findByRole("alert")).toHaveTextContent(words);
});

test("a user who is no administrator is refused with the reason", async () => {
  server.use(
    http.get(api("/me"), () => HttpResponse.json({ ...ada, role: "viewer" })),
    http.get(api("/users"), () => problem(403, { code: "forbidden", detail: "This needs the role admin" })),
  );
  open("/users");
  expect(await screen.findByRole("heading", { name: "This page is for administrators" })).toBeVisible();
});

test("a token is shown once", async () => {
  const token = {
    id: "t1",
    name: "ci",
    role: "editor",
    hint: "wxyz",
    createdBy: "Ada",
    createdAt: "2026-11-21T12:00:00Z",
  };
  let items: unknown[] = [];
  server.use(
    http.get(api("/tokens"), () => HttpResponse.json({ items })),
    http.post(api("/tokens"), () => {
      items = [token];
      return HttpResponse.json({ token, secret: "tcn_secret" }, { status: 201 });
    }),
  );
  const { user } = open("/tokens");
  await screen.findByRole("heading", { name: "No API tokens yet" });
  await user.click(screen.getByRole("button", { name: "New token" }));
  await user.type(await screen.findByLabelText("Name"), "ci");
  await user.selectOptions(screen.getByLabelText("Role"), "editor");
  await user.click(screen.getByRole("button", { name: "Create token" }));
  const dialog = await screen.findByRole("dialog", { name: "Token “ci”" });
  expect(within(dialog).getByText("tcn_secret")).toBeVisible();
  await user.click(within(dialog).getByRole("button", { name: "Close" }));
  expect(screen.queryByText("tcn_secret")).toBeNull();
  expect(await screen.findByText("tcn_…wxyz")).toBeVisible();
});

test("a user of a provider is not offered a password", async () => {
  server.use(
    http.get(api("/me"), () => HttpResponse.json({ ...ada, hasPassword: false, issuer: "https://login.example.com" })),
  );
  open("/account");
  expect(await screen.findByText(/You sign in with https:\/\/login\.example\.com/)).toBeVisible();
  expect(screen.queryByLabelText("New password")).toBeNull();
});

test("a user without a password gets a link; the last administrator stays", async () => {
  const admin = {
    ...ada,
    version: 3,
    disabled: false,
    hasPassword: true,
    createdAt: "2026-11-21T12:00:00Z",
    updatedAt: "2026-11-21T12:00:00Z",
  };
  server.use(
    http.get(api("/users"), () => HttpResponse.json({ items: [admin] })),
    http.post(api("/users"), () => HttpResponse.json({ ...admin, id: "u2" }, { status: 201 })),
    http.post(api("/users/u2/link"), () =>
      HttpResponse.json({ url: "/sign-in#abc", expiresAt: "2026-11-22T12:00:00Z" }),
    ),
    http.delete(api("/users/u1"), () => problem(409, { code: "conflict", detail: "This is the last administrator" })),
  );
  const { user } = open("/users");
  await user.click(await screen.findByRole("button", { name: "New user" }));
  await user.type(await screen.findByLabelText("Name"), "Bob");
  await user.type(screen.getByLabelText("E-mail address"), "bob@example.com");
  await user.click(screen.getByRole("button", { name: "Create user" }));
  const dialog = await screen.findByRole("dialog", { name: "Sign-in link for Bob" });
  expect(within(dialog).getByText(/\/sign-in#abc$/)).toBeVisible();
  await user.click(within(dialog).getByRole("button", { name: "Close" }));
  await user.click(screen.getByRole("button", { name: "Delete Ada" }));
  await user.click(screen.getByRole("button", { name: "Delete user" }));
  expect(await screen.findByRole("alert")).toHaveTextContent("This is the last administrator");
});

test("the audit log tells who changed what", async () => {
  const asked: string[] = [];
  server.use(
    http.get(api("/audit"), ({ request }) => {
      asked.push(new URL(request.url).search);
      return HttpResponse.json({
        items: [
          {
            id: 7,
            at: "2026-11-21T12:00:00Z",
            actorKind: "user",
            actor: "ada@example.com",
            via: "session",
            address: "192.0.2.1",
            action: "update",
            objectKind: "rule",
            objectName: "Order failed",
            before: { enabled: true },
            after: { enabled: false },
          },
        ],
      });
    }),
  );
  const { user } = open("/audit");
  expect(await screen.findByText("enabled: true → false")).toBeVisible();
  expect(screen.getByText(/changed rule “Order failed”/)).toBeVisible();
  await user.selectOptions(screen.getByLabelText("About"), "rule");
  await user.type(screen.getByLabelText("By"), "ada@example.com");
  await user.click(screen.getByRole("button", { name: "Show" }));
  await expect.poll(() => asked.at(-1)).toBe("?limit=50&objectKind=rule&actor=ada%40example.com");
});

test("the audit log says which kind it is filtered by, also if that is not offered", async () => {
  server.use(http.get(api("/audit"), () => HttpResponse.json({ items: [] })));
  open("/audit?about=tenant");
  expect(await screen.findByLabelText("About")).toHaveDisplayValue("Tenant");
});

test("each encryption key says what becomes of it, without revealing a key", async () => {
  server.use(
    http.get(api("/encryption-keys"), () =>
      HttpResponse.json({
        items: [
          { id: "0a0a0a0a", state: "ACTIVE", secrets: 3 },
          { id: "0b0b0b0b", state: "IN_USE", secrets: 1 },
          { id: "0c0c0c0c", state: "UNUSED", secrets: 0 },
          { id: "0d0d0d0d", state: "MISSING", secrets: 2 },
        ],
      }),
    ),
  );
  open("/keys");
  expect(await screen.findByRole("row", { name: /0a0a0a0a.*Active.*3 webhooks/ })).toBeVisible();
  expect(screen.getByRole("row", { name: /0b0b0b0b.*In use.*keys reseal.*1 webhook/ })).toBeVisible();
  expect(screen.getByRole("row", { name: /0c0c0c0c.*No longer needed.*Remove it/ })).toBeVisible();
  expect(screen.getByRole("row", { name: /0d0d0d0d.*Missing.*Add it/ })).toBeVisible();
  expect(screen.getByRole("link", { name: "Settings" })).toHaveAttribute("data-status", "active");
});

test("a user whose link could not be made is not created twice", async () => {
  let [created, links] = [0, 0];
  server.use(
    http.get(api("/users"), () => HttpResponse.json({ items: [] })),
    http.post(api("/users"), () => {
      created += 1;
      return created === 1
        ? HttpResponse.json({ id: "u2" }, { status: 201 })
        : problem(409, { code: "conflict", detail: "The e-mail address is taken" });
    }),
    http.post(api("/users/u2/link"), () => {
      links += 1;
      return links === 1
        ? problem(503, { code: "unavailable", detail: "Postgres cannot be reached." })
        : HttpResponse.json({ url: "/sign-in#once" }, { status: 201 });
    }),
  );
  const { user } = open("/users");
  await screen.findByRole("heading", { name: "No users yet" });
  await user.click(screen.getByRole("button", { name: "New user" }));
  const dialog = within(await screen.findByRole("dialog", { name: "New user" }));
  await user.type(dialog.getByLabelText("Name"), "Bob");
  await user.type(dialog.getByLabelText("E-mail address"), "bob@example.com");
  await user.click(dialog.getByRole("button", { name: "Create user" }));
  await dialog.findByText(/Postgres cannot be reached/);
  await user.click(dialog.getByRole("button", { name: "Create user" }));
  expect(await screen.findByRole("dialog", { name: "Sign-in link for Bob" })).toHaveTextContent("/sign-in#once");
  expect(created).toBe(1);
});
