// The same three with @grpc/grpc-js: list, search TEXT, follow TOOL ID.
import { create, type DescMessage, type DescMethodServerStreaming, type MessageShape } from "@bufbuild/protobuf";
import {
  AgentIndex,
  ReadTranscriptRequestSchema,
  SearchRequestSchema,
  SnapshotRequestSchema,
} from "flue-grpc/agentindex/v1";

import { callMetadata, isBroken, openClient, serverStream } from "./grpc-js.js";
import { run } from "./run.js";
import { showHit, showMessage, showSummary } from "./show.js";
import { MOST_HITS, resume, targetFromEnvironment } from "./target.js";

/**
 * Streams, and goes on with what `take` has noted in `request`, unless it says that a
 * response was the last.
 */
function stream<I extends DescMessage, O extends DescMessage>(
  method: DescMethodServerStreaming<I, O>,
  request: MessageShape<I>,
  take: (response: MessageShape<O>) => boolean,
): Promise<void> {
  const target = targetFromEnvironment();
  const client = openClient(target);
  return resume(async (progressed) => {
    for await (const response of serverStream(client, method, request, callMetadata(target))) {
      progressed(take(response));
    }
  }, isBroken);
}

async function list(): Promise<void> {
  const request = create(SnapshotRequestSchema);
  await stream(AgentIndex.method.snapshot, request, (response) => {
    response.summaries.forEach(showSummary);
    request.pageToken = response.nextPageToken;
    return !request.pageToken;
  });
}

async function search(query: string): Promise<void> {
  const request = create(SearchRequestSchema, { query, limit: MOST_HITS });
  await stream(AgentIndex.method.search, request, (response) => {
    response.hits.forEach(showHit);
    request.pageToken = response.nextPageToken;
    request.limit -= response.hits.length;
    return !request.pageToken || response.truncated || request.limit <= 0;
  });
}

async function follow(tool: string, id: string): Promise<void> {
  const request = create(ReadTranscriptRequestSchema, { tool, id, follow: true });
  await stream(AgentIndex.method.readTranscript, request, ({ page }) => {
    if (!page) return false;
    page.messages.forEach(showMessage);
    // From here another call goes on, in this very file. Offsets are bigint.
    request.offset = page.next;
    request.revision = page.revision;
    return false;
  });
}

await run(async (verb, first, second) => {
  if (verb === "list") await list();
  else if (verb === "search" && first) await search(first);
  else if (verb === "follow" && first && second) await follow(first, second);
  else throw new Error("usage: grpc-js list | search TEXT | follow TOOL ID");
});
