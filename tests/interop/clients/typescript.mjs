// A client on the TypeScript SDK that does what it is told, one JSON object a line on standard input and output.
//
//     node typescript.mjs NODE_MODULES SDK TRANSPORT TARGET
//
// SDK is 1 (handshake) or 2 (stateless). TRANSPORT is http or sse with a URL, or stdio with a JSON array, the command.
// In:  {"id": 1, "do": "call", "with": ["name", {"arguments": 1}]}
// Out: {"id": 1, "result": ...} or {"id": 1, "error": "..."}; {"method": "notifications/...", "params": {...}} unasked

import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";

const [modules, sdk, kind, target] = process.argv.slice(2);
const require = createRequire(join(modules, "client.js"));

const LISTS = {
  tools: "listTools",
  resources: "listResources",
  resourceTemplates: "listResourceTemplates",
  prompts: "listPrompts",
};
const SAMPLED = { role: "assistant", model: "interop", content: { type: "text", text: "Paris, says the client" } };
const ELICITED = { action: "accept", content: { name: "Ada" } };
const ROOTS = { roots: [{ uri: "file:///interop/root", name: "root" }] };

function load() {
  if (sdk === "2") {
    const { StdioClientTransport } = require("@modelcontextprotocol/client/stdio");
    return { ...require("@modelcontextprotocol/client"), StdioClientTransport };
  }
  return {
    ...require("@modelcontextprotocol/sdk/client/index.js"),
    ...require("@modelcontextprotocol/sdk/client/stdio.js"),
    ...require("@modelcontextprotocol/sdk/client/streamableHttp.js"),
    ...require("@modelcontextprotocol/sdk/client/sse.js"),
    ...require("@modelcontextprotocol/sdk/types.js"),
  };
}

const library = load();

function transport() {
  if (kind === "http") return new library.StreamableHTTPClientTransport(new URL(target));
  if (kind === "sse") return new library.SSEClientTransport(new URL(target));
  const [command, ...args] = JSON.parse(target);
  return new library.StdioClientTransport({ command, args, env: process.env, stderr: "inherit" });
}

function connectable() {
  const capabilities = { sampling: {}, elicitation: { form: {} }, ...(kind === "stdio" ? { roots: {} } : {}) };
  const options = { capabilities };
  if (sdk === "2") options.versionNegotiation = { mode: { pin: "2026-07-28" } };
  const client = new library.Client({ name: `typescript-${sdk}`, version: "1.0.0" }, options);
  const answer = (method, schema, result) =>
    client.setRequestHandler(sdk === "2" ? method : library[schema], async () => result);
  answer("sampling/createMessage", "CreateMessageRequestSchema", SAMPLED);
  answer("elicitation/create", "ElicitRequestSchema", ELICITED);
  if (kind === "stdio") answer("roots/list", "ListRootsRequestSchema", ROOTS);
  client.fallbackNotificationHandler = async ({ method, params }) => say({ method, params });
  if (sdk === "2") {
    for (const method of ["notifications/message", "notifications/resources/updated"])
      client.setNotificationHandler(method, ({ params }) => say({ method, params }));
  }
  return client;
}

function say(message) {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}

const client = connectable();

function callTool(name, args, options) {
  const params = { name, arguments: args };
  if (sdk === "2") return client.callTool({ ...params, _meta: { [library.LOG_LEVEL_META_KEY]: "warning" } }, options);
  return client.callTool(params, undefined, options);
}

const actions = {
  async list(kind) {
    const found = [];
    let cursor;
    do {
      const page = await client[LISTS[kind]](cursor ? { cursor } : undefined);
      found.push(...page[kind]);
      cursor = page.nextCursor;
    } while (cursor);
    return found;
  },
  call: (name, args) => callTool(name, args),
  read: (uri) => client.readResource({ uri }),
  prompt: (name, args) => client.getPrompt({ name, arguments: args }),
  complete: (ref, name, value) => client.complete({ ref, argument: { name, value } }),
  async progress(name, args) {
    const seen = [];
    await callTool(name, args, { onprogress: (progress) => seen.push(progress) });
    return seen;
  },
  async cancel(name, args) {
    const controller = new AbortController();
    const call = callTool(name, args, { signal: controller.signal, onprogress: () => controller.abort("enough") });
    return call.then(
      () => "finished",
      () => "cancelled",
    );
  },
  async level(level) {
    if (sdk !== "2") await client.setLoggingLevel(level);
  },
  async watch(uri) {
    if (sdk !== "2") return client.subscribeResource({ uri });
    const subscription = await client.listen({ resourceSubscriptions: [uri] });
    return subscription.honoredFilter;
  },
};

async function main() {
  await client.connect(transport());
  say({ id: 0, result: "connected" });
  const running = new Set();
  for await (const line of createInterface({ input: process.stdin })) {
    const asked = JSON.parse(line);
    const work = actions[asked.do](...asked.with).then(
      (result) => say({ id: asked.id, result }),
      (error) => say({ id: asked.id, error: String(error?.message ?? error) }),
    );
    running.add(work);
    work.finally(() => running.delete(work));
  }
  await Promise.all(running);
  await client.close();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
