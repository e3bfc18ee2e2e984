// Runs the scenarios of tests/conformance, and prints one line of JSON for each.
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";

import { ConnectCaller, GrpcJsCaller } from "./callers.js";
import { CallFailed, Mismatch } from "./json.js";
import { Runner, type Step } from "./steps.js";

interface Scenario {
  name: string;
  transports?: string[];
  steps: Step[];
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    caller: { type: "string", default: "connect" },
    address: { type: "string", default: "" },
    token: { type: "string", default: "" },
    ca: { type: "string", default: "" },
    home: { type: "string", default: "" },
    run: { type: "string", default: "" },
    transport: { type: "string", default: "unix" },
  },
});

const ca = values.ca ? { ca: readFileSync(values.ca, "utf8") } : {};
const target = { address: values.address, ...ca };

async function run(scenario: Scenario): Promise<object> {
  const { name, transports = [values.transport], steps } = scenario;
  if (!transports.includes(values.transport)) return { scenario: name, outcome: "not applicable" };
  const caller =
    values.caller === "grpc-js" ? new GrpcJsCaller(target) : new ConnectCaller(target);
  try {
    await new Runner(caller, values.token, values.home, `${values.run}-${name}`).steps(steps);
    return { scenario: name, outcome: "passed" };
  } catch (error) {
    if (!(error instanceof Mismatch || error instanceof CallFailed)) throw error;
    return { scenario: name, outcome: "failed", detail: error.message };
  } finally {
    caller.close();
  }
}

for (const file of positionals) {
  for (const scenario of JSON.parse(readFileSync(file, "utf8")) as Scenario[]) {
    console.log(JSON.stringify(await run(scenario)));
  }
}
process.exit();
