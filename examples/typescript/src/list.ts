// Prints the sessions of every coding agent, newest first.
import { create } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { AgentIndex, SnapshotRequestSchema } from "flue-grpc/agentindex/v1";

import { isBroken, openTransport } from "./connect.js";
import { run } from "./run.js";
import { showSummary } from "./show.js";
import { resume, targetFromEnvironment } from "./target.js";

await run(async () => {
  const client = createClient(AgentIndex, openTransport(targetFromEnvironment()));
  const request = create(SnapshotRequestSchema);

  await resume(async (progressed) => {
    for await (const response of client.snapshot(request)) {
      response.summaries.forEach(showSummary);
      request.pageToken = response.nextPageToken;
      progressed(!request.pageToken);
    }
  }, isBroken);
});
