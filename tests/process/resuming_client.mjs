// Calls the tool s__slow with the TypeScript SDK and writes what comes of it, one JSON value a line.
//
//     node resuming_client.mjs NODE_MODULES URL

import { createRequire } from "node:module";
import { join } from "node:path";

const [modules, url] = process.argv.slice(2);
const require = createRequire(join(modules, "client.js"));
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");

const say = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);
const client = new Client({ name: "resuming", version: "1" }, { capabilities: {} });
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
const options = { onprogress: ({ progress }) => say(progress), resetTimeoutOnProgress: true };
const result = await client.callTool({ name: "s__slow", arguments: {} }, undefined, options);
say(result.content[0].text);
await client.close();
