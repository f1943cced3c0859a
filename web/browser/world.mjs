// Starts what the browser tests need: a database of their own in each engine, the real binary, a receiver of webhooks,
// and a browser. The engines are those of `devstack run`; everything else is made here and ended by close().
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { chromium } from "playwright-core";

const binary = process.env.TOCSIN_BIN ?? fileURLToPath(new URL("../../bin/tocsin", import.meta.url));
const browserPath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const startsWithinMs = 30_000;

/** How long each exchange takes. */
export const lastsMs = 250;

/** Creates the world. If that fails, it undoes what it has made and then throws. */
export async function createWorld() {
  const undo = [];
  const world = {
    /** Each body that the receiver was sent, oldest first. */
    received: [],
    /** What the receiver answers. */
    answers: { status: 200 },
    close: async () => {
      for (const step of undo.splice(0).reverse()) await step();
    },
  };
  try {
    await build(world, undo);
  } catch (error) {
    await world.close();
    throw error;
  }
  return world;
}

async function build(world, undo) {
  const postgres = new URL(required("TOCSIN_TEST_POSTGRES_URL"));
  const clickhouse = new URL(required("TOCSIN_TEST_CLICKHOUSE_URL"));
  if (!existsSync(binary)) throw new Error(`${binary} does not exist: run make build`);
  if (!existsSync(browserPath)) {
    throw new Error(
      `no browser at ${browserPath}: run apt-get install chromium-headless-shell, or name one in CHROMIUM`,
    );
  }
  const database = `browser_${randomBytes(6).toString("hex")}`;

  const admin = new pg.Client({ connectionString: postgres.href });
  await admin.connect();
  undo.push(() => admin.end());
  await admin.query(`CREATE DATABASE ${database}`);
  undo.push(() => admin.query(`DROP DATABASE ${database} WITH (FORCE)`));
  postgres.pathname = `/${database}`;

  const query = async (sql, path = clickhouse.pathname) => {
    const answer = await fetch(`http://${clickhouse.host}/?database=${path.slice(1)}`, {
      method: "POST",
      headers: {
        "X-ClickHouse-User": clickhouse.username || "default",
        "X-ClickHouse-Key": clickhouse.password,
      },
      body: sql,
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`ClickHouse: ${text}`);
    return text;
  };
  const defaultDatabase = clickhouse.pathname;
  await query(`CREATE DATABASE ${database}`, defaultDatabase);
  undo.push(() => query(`DROP DATABASE ${database} SYNC`, defaultDatabase));
  clickhouse.pathname = `/${database}`;

  const environment = {
    ...process.env,
    TOCSIN_POSTGRES_URL: postgres.href,
    TOCSIN_CLICKHOUSE_URL: clickhouse.href,
    TOCSIN_ENCRYPTION_KEY: randomBytes(32).toString("base64"),
    TOCSIN_OUTGOING_ALLOW: "127.0.0.0/8",
    TOCSIN_ADMIN_EMAIL: "ada@example.com",
    TOCSIN_ADMIN_PASSWORD: "correct horse battery",
    TOCSIN_LOG_FORMAT: "json",
  };
  await query(await output(["source", "ddl"], environment));
  await output(["migrate"], environment);

  world.receiver = await receive(world, undo);
  let tocsin;
  /** Starts Tocsin at its previous address. */
  world.start = async () => {
    tocsin = await serve(tocsin?.address ?? "127.0.0.1:0", environment);
    world.url = tocsin.url;
  };
  world.stop = () => tocsin.stop();
  await world.start();
  undo.push(() => world.stop());

  /** Signs in on the page that asks for it. */
  world.signIn = async (page) => {
    await page.getByLabel("E-mail address").fill(environment.TOCSIN_ADMIN_EMAIL);
    await page.getByLabel("Password").first().fill(environment.TOCSIN_ADMIN_PASSWORD);
    await page.getByRole("button", { name: "Sign in" }).click();
  };

  /**
   * Writes exchanges, as they are seen when they end, which is now or, `ago` given, so many milliseconds before. They fail,
   * unless `completed` says otherwise.
   */
  world.fail = (...exchanges) => query(`INSERT INTO exchanges FORMAT JSONEachRow\n${exchanges.map(row).join("\n")}`);

  world.browser = await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox"] });
  undo.push(() => world.browser.close());
  /**
   * A separate browser. It is set to save data, so that a page does not prefetch all others, unless `prefetches` says
   * otherwise.
   */
  world.context = async ({ prefetches = false, ...options } = {}) => {
    const context = await world.browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
    if (!prefetches) await context.addInitScript(saveData);
    return context;
  };
}

function saveData() {
  Object.defineProperty(navigator, "connection", { value: { saveData: true }, configurable: true });
}

function required(name) {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: run make test-browser, or bin/devstack run -- npm run test:browser`);
  return value;
}

function row({
  id,
  application = "orders",
  route = "order-to-erp",
  message = "ERP refused",
  ago = 0,
  attributes = {},
  completed = false,
  lasts = lastsMs,
}) {
  const end = Date.now() - ago;
  const start = end - lasts;
  const nanoseconds = (ms) => `${new Date(ms).toISOString().replace("T", " ").slice(0, 23)}000000`;
  return JSON.stringify({
    tenant_id: "default",
    start_time: nanoseconds(start),
    environment: "production",
    application_id: application,
    route_id: route,
    execution_id: id,
    end_time: nanoseconds(end),
    duration: String((end - start) * 1e6),
    ...(completed ? { status: "COMPLETED" } : failure(message)),
    correlation_id: `c-${id}`,
    attributes: { customer: "Müller & Söhne", ...attributes },
  });
}

const failure = (message) => ({
  status: "FAILED",
  error_type: "java.net.ConnectException",
  error_message: message,
  error_stack: [
    `java.net.ConnectException: ${message}`,
    "\tat java.base/java.net.Socket.connect(Socket.java:751)",
    "\tat com.example.orders.ErpClient.post(ErpClient.java:88)",
  ].join("\n"),
});

/** Runs the binary to its end and returns what it printed. */
function output(args, env) {
  return new Promise((resolve, reject) => {
    const child = spawn(binary, args, { env, stdio: ["ignore", "pipe", "pipe"] });
    let out = "";
    let log = "";
    child.stdout.on("data", (chunk) => {
      out += chunk;
    });
    child.stderr.on("data", (chunk) => {
      log += chunk;
    });
    child.once("error", reject);
    child.once("close", (code) => (code === 0 ? resolve(out) : reject(new Error(`tocsin ${args.join(" ")}: ${log}`))));
  });
}

/** Starts the server and waits until it reports its address. */
function serve(listen, env) {
  return new Promise((resolve, reject) => {
    const child = spawn(binary, ["serve"], {
      env: { ...env, TOCSIN_LISTEN: listen },
      stdio: ["ignore", "ignore", "pipe"],
    });
    const ended = new Promise((done) => child.once("close", done));
    const log = [];
    const giveUp = setTimeout(() => child.kill("SIGKILL"), startsWithinMs);
    createInterface({ input: child.stderr }).on("line", (line) => {
      log.push(line);
      const { msg, address } = JSON.parse(line);
      if (msg !== "running") return;
      clearTimeout(giveUp);
      resolve({
        address,
        url: `http://${address}`,
        stop: async () => {
          child.kill("SIGTERM");
          await ended;
        },
      });
    });
    child.once("error", reject);
    void ended.then(() => reject(new Error(`tocsin serve ended:\n${log.join("\n")}`)));
  });
}

async function receive({ received, answers }, undo) {
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    received.push(JSON.parse(body));
    response.statusCode = answers.status;
    response.end("ok");
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  undo.push(() => new Promise((resolve) => server.close(resolve)));
  return `http://127.0.0.1:${server.address().port}/hook`;
}
