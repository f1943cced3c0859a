import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { body, client } from "./client";
import { ApiError, isAway, isLame } from "./errors";
import { allPages } from "./pages";
import type { components } from "./schema.gen";

type Schemas = components["schemas"];
export type Me = Schemas["Me"];
export type Role = Schemas["Role"];
export type SignIn = Schemas["SignIn"];
export type User = Schemas["User"];
export type Token = Schemas["Token"];
export type EncryptionKey = Schemas["EncryptionKey"];
export type AuditEntry = Schemas["AuditEntry"];

export const accessKeys = {
  session: ["session"] as const,
  me: ["me"] as const,
  users: ["users"] as const,
  tokens: ["tokens"] as const,
  audit: ["audit"] as const,
  keys: ["keys"] as const,
};

/** The roles, lowest first. Each may do what the roles before it may. */
export const roles: readonly { value: Role; label: string; may: string }[] = [
  { value: "viewer", label: "Viewer", may: "read-only" },
  { value: "operator", label: "Operator", may: "acknowledges, resolves, silences, sends messages again" },
  { value: "editor", label: "Editor", may: "edits rules, webhooks and routing" },
  { value: "admin", label: "Administrator", may: "manages users and tokens" },
];

export const roleLabel = (role: Role) => roles.find(({ value }) => value === role)?.label ?? role;

/** The result of {@link session}. */
export type SessionState = SignIn & { problem?: string };

/** The secret of a one-time link and the token of a wall screen that the server has neither accepted nor refused yet. */
const unused = { secret: "", token: "" };

/** Removes the secret of a one-time link from the address, so that neither a reload nor the history has it. */
function takeLinkSecret(): string {
  const { pathname, hash } = globalThis.location;
  if (pathname === "/sign-in" && hash.length > 1) {
    unused.secret = hash.slice(1);
    globalThis.history.replaceState(null, "", "/");
  }
  return unused.secret;
}

/** The address at which a wall screen with a token is opened. */
export const wallAddress = (token: string) => `${globalThis.location.origin}/wall#${token}`;

/** Removes the token of a wall screen from the address, so that nobody can read it from the screen. */
function takeDisplayToken(): string {
  const { pathname, hash } = globalThis.location;
  const token = pathname === "/wall" ? /^#(tcn_[a-z0-9]+)$/.exec(hash)?.[1] : undefined;
  if (token) {
    unused.token = token;
    globalThis.history.replaceState(globalThis.history.state, "", pathname);
  }
  return unused.token;
}

/**
 * Whether the reader is signed in, and how to sign in. It uses the secret of a one-time link, and the token of a wall screen,
 * with which this browser then shows pages. If Tocsin is away, the next try uses them.
 */
export function session() {
  return queryOptions({
    queryKey: accessKeys.session,
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async (): Promise<SessionState> => {
      let problem: string | undefined;
      const secret = takeLinkSecret();
      const token = takeDisplayToken();
      try {
        if (secret) await body(client.POST("/session/link", { body: { secret } }));
        if (token) await body(client.POST("/session/display", { body: { token } }));
      } catch (error) {
        if (!(error instanceof ApiError) || isAway(error) || isLame(error)) throw error;
        problem = error.message;
      }
      unused.secret = "";
      unused.token = "";
      const state = await body(client.GET("/session"));
      return problem && !state.signedIn ? { ...state, problem } : state;
    },
  });
}

export function me() {
  return queryOptions({
    queryKey: accessKeys.me,
    staleTime: 60_000,
    queryFn: ({ signal }) => body(client.GET("/me", { signal })),
  });
}

/** Who is signed in with this browser, possibly in another tab; undefined for nobody. */
export async function whoIsIn(): Promise<Me | undefined> {
  const { signedIn } = await body(client.GET("/session"));
  return signedIn ? await body(client.GET("/me")) : undefined;
}

export const signIn = (credentials: Schemas["Credentials"]) => body(client.POST("/session", { body: credentials }));
export const setUp = (first: Schemas["SetUp"]) => body(client.POST("/setup", { body: first }));
export const signOut = () => body(client.DELETE("/session"));
export const changePassword = (change: Schemas["PasswordChange"]) => body(client.PUT("/me/password", { body: change }));

export function userList() {
  return queryOptions({
    queryKey: accessKeys.users,
    queryFn: ({ signal }) =>
      allPages<User>((cursor) => body(client.GET("/users", { signal, params: { query: { limit: 200, ...cursor } } }))),
  });
}

export const createUser = (user: Schemas["NewUser"]) => body(client.POST("/users", { body: user }));

export const updateUser = (user: User, edit: Partial<Schemas["UserEdit"]>) =>
  body(
    client.PUT("/users/{id}", {
      params: { path: { id: user.id }, header: { "If-Match": `"${user.version}"` } },
      body: { name: user.name, role: user.role, disabled: user.disabled, ...edit },
    }),
  );

export const deleteUser = (id: string) => body(client.DELETE("/users/{id}", { params: { path: { id } } }));

/** Makes a link with which a user signs in once, as a complete address. */
export async function createLink(id: string): Promise<string> {
  const { url } = await body(client.POST("/users/{id}/link", { params: { path: { id } } }));
  return new URL(url, globalThis.location.origin).href;
}

export function tokenList() {
  return queryOptions({
    queryKey: accessKeys.tokens,
    queryFn: ({ signal }) =>
      allPages<Token>((cursor) =>
        body(client.GET("/tokens", { signal, params: { query: { limit: 200, ...cursor } } })),
      ),
  });
}

export const createToken = (token: Schemas["NewToken"]) => body(client.POST("/tokens", { body: token }));
export const revokeToken = (id: string) => body(client.DELETE("/tokens/{id}", { params: { path: { id } } }));

/** The encryption keys of the replica that answers, the active one first. */
export function encryptionKeys() {
  return queryOptions({
    queryKey: accessKeys.keys,
    queryFn: async ({ signal }) => (await body(client.GET("/encryption-keys", { signal }))).items,
  });
}

/** A filter of the audit log. */
export type AuditFilter = { actor?: string; objectKind?: string; objectId?: string };

export function auditLog(filter: AuditFilter) {
  return infiniteQueryOptions({
    queryKey: [...accessKeys.audit, filter],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ signal, pageParam }) =>
      body(
        client.GET("/audit", {
          signal,
          params: { query: { limit: 50, ...filter, ...(pageParam ? { cursor: pageParam } : {}) } },
        }),
      ),
    getNextPageParam: (last) => last.nextCursor,
  });
}

/** The name of the reader in alerts and notes; undefined before it is known who that is. */
export function actorOf(who: Me | undefined): string | undefined {
  if (who === undefined) return undefined;
  return who.kind === "user" ? who.email : who.name;
}

/** Whether the reader may do what requires a role. Before it is known who that is, the answer is no. */
export function isAtLeast(who: Me | undefined, role: Role): boolean {
  const rank = (of: Role) => roles.findIndex(({ value }) => value === of);
  return who !== undefined && rank(who.role) >= rank(role);
}
