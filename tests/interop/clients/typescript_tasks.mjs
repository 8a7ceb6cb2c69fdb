// The TypeScript SDK's client of 2025-11-25 with its tasks: follows some of them through a server, and says what it saw.
//
//     node typescript_tasks.mjs NODE_MODULES URL
//
// Prints one JSON object: for each step what came of it.

import { createRequire } from "node:module";
import { join } from "node:path";

const [modules, url] = process.argv.slice(2);
const require = createRequire(join(modules, "client.js"));
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");
const { InMemoryTaskStore } = require("@modelcontextprotocol/sdk/experimental/tasks/stores/in-memory.js");
const types = require("@modelcontextprotocol/sdk/types.js");

const capabilities = {
  sampling: {},
  elicitation: { form: {} },
  tasks: { list: {}, cancel: {}, requests: { sampling: { createMessage: {} } } },
};
const client = new Client(
  { name: "typescript-tasks", version: "1.0.0" },
  { capabilities, taskStore: new InMemoryTaskStore() },
);
const elicited = [];
client.setRequestHandler(types.ElicitRequestSchema, async ({ params }) => {
  elicited.push(params._meta ?? {});
  return { action: "accept", content: { interpretation: "snake", confirm: true, name: "Ada" } };
});
client.setRequestHandler(types.CreateMessageRequestSchema, async (request, extra) => {
  const said = { role: "assistant", model: "interop", content: { type: "text", text: "said by a task" } };
  if (!request.params.task) return said;
  const task = await extra.taskStore.createTask({ ttl: request.params.task.ttl });
  await extra.taskStore.storeTaskResult(task.taskId, "completed", said);
  return { task };
});

async function follow(name, args) {
  const seen = { statuses: [], ids: [] };
  const options = { task: { ttl: 60000 } };
  const stream = client.experimental.tasks.callToolStream({ name, arguments: args }, types.CallToolResultSchema, options);
  for await (const message of stream) {
    if (message.type === "error") throw message.error;
    if (message.type === "result") seen.text = message.result.content[0].text;
    if (message.task) {
      seen.ids.push(message.task.taskId);
      if (seen.statuses.at(-1) !== message.task.status) seen.statuses.push(message.task.status);
    }
  }
  seen.ids = [...new Set(seen.ids)];
  return seen;
}

async function cancel(name, args) {
  const params = { name, arguments: args, task: { ttl: 60000 } };
  const { task } = await client.request({ method: "tools/call", params }, types.CreateTaskResultSchema);
  const cancelled = await client.experimental.tasks.cancelTask(task.taskId);
  const again = await client.experimental.tasks.cancelTask(task.taskId).catch((error) => error.code);
  return { status: cancelled.status, again };
}

async function list() {
  const found = [];
  let cursor;
  do {
    const page = await client.experimental.tasks.listTasks(cursor);
    found.push(...page.tasks.map((task) => task.taskId));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return found;
}

async function attempt(step) {
  return step().catch((error) => ({ error: `${error}` }));
}

await client.connect(new StreamableHTTPClientTransport(new URL(url)));
const report = { capabilities: client.getServerCapabilities().tasks };
const { tools } = await client.listTools();
report.support = Object.fromEntries(tools.map((tool) => [tool.name, tool.execution?.taskSupport ?? null]));
report.research = await attempt(() => follow("simulate-research-query", { topic: "python", ambiguous: true }));
report.compute = await attempt(() => follow("slow_compute", { seconds: 0.3, label: "it" }));
report.confirm = await attempt(() => follow("confirm_delete", { filename: "x" }));
report.plain = await attempt(() => client.callTool({ name: "failing_job", arguments: {} }));
report.cancelled = await attempt(() => cancel("slow_compute", { seconds: 60 }));
report.sampled = await attempt(() => client.callTool({ name: "trigger-sampling-request-async", arguments: { prompt: "hi" } }));
report.listed = await attempt(list);
report.elicited = elicited;
await client.close();
process.stdout.write(JSON.stringify(report), () => process.exit(0)); // its task store keeps timers
