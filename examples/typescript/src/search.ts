// Prints the messages that hold a text, as they are found.
import { create } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { AgentIndex, SearchRequestSchema } from "flue-grpc/agentindex/v1";

import { isBroken, openTransport } from "./connect.js";
import { run } from "./run.js";
import { showHit } from "./show.js";
import { MOST_HITS, resume, targetFromEnvironment } from "./target.js";

await run(async (query) => {
  if (!query) throw new Error("usage: search TEXT");
  const client = createClient(AgentIndex, openTransport(targetFromEnvironment()));
  const request = create(SearchRequestSchema, { query, limit: MOST_HITS });

  await resume(async (progressed) => {
    for await (const response of client.search(request)) {
      response.hits.forEach(showHit);
      request.pageToken = response.nextPageToken;
      request.limit -= response.hits.length;
      progressed(!request.pageToken || response.truncated || request.limit <= 0);
    }
  }, isBroken);
});
