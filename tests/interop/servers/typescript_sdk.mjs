// A server on the TypeScript SDK 2.x: Streamable HTTP, both eras on /mcp. Prints its URL once it accepts.
//
//     node typescript_sdk.mjs NODE_MODULES

import { once } from "node:events";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { Readable } from "node:stream";

const require = createRequire(join(process.argv[2], "server.js"));
const { McpServer, ResourceTemplate, completable, createMcpHandler } = require("@modelcontextprotocol/server");
const { z } = require("zod");

const NAMES = ["Ada", "Alan", "Grace"];

function text(value) {
  return { content: [{ type: "text", text: value }] };
}

function build() {
  const server = new McpServer({ name: "typescript-sdk", version: "1.0.0" });
  server.registerTool(
    "add",
    { description: "Add two numbers.", inputSchema: z.object({ a: z.number(), b: z.number() }) },
    ({ a, b }) => text(String(a + b)),
  );
  server.registerResource("today", "note://today", { mimeType: "text/plain" }, (uri) => ({
    contents: [{ uri: uri.href, mimeType: "text/plain", text: "typescript-sdk note" }],
  }));
  server.registerResource(
    "of",
    new ResourceTemplate("note://of/{name}", { list: undefined }),
    { mimeType: "text/plain" },
    (uri, { name }) => ({ contents: [{ uri: uri.href, mimeType: "text/plain", text: `note of ${name}` }] }),
  );
  const name = completable(z.string(), (value) => NAMES.filter((each) => each.startsWith(value)));
  server.registerPrompt("greet", { description: "Greet someone.", argsSchema: z.object({ name }) }, (args) => ({
    messages: [{ role: "user", content: { type: "text", text: `Greet ${args.name} from typescript-sdk` } }],
  }));
  return server;
}

const handler = createMcpHandler(build);

async function answer(request, response) {
  const body = request.method === "POST" ? Readable.toWeb(request) : undefined;
  const url = `http://${request.headers.host}${request.url}`;
  const gone = new AbortController();
  response.on("close", () => gone.abort());
  const asked = new Request(url, {
    method: request.method,
    headers: request.headers,
    body,
    duplex: "half",
    signal: gone.signal,
  });
  const answered = await handler.fetch(asked);
  response.writeHead(answered.status, Object.fromEntries(answered.headers));
  if (answered.body) Readable.fromWeb(answered.body).on("error", () => response.destroy()).pipe(response);
  else response.end();
}

const listener = createServer((request, response) => {
  answer(request, response).catch((error) => {
    console.error(error);
    response.destroy();
  });
});
listener.listen(0, "127.0.0.1");
await once(listener, "listening");
console.log(`http://127.0.0.1:${listener.address().port}/mcp`);
