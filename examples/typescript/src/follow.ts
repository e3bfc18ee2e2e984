// Prints a transcript and goes on as it grows, also after the server or the
// connection was gone.
import { create } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { AgentIndex, ReadTranscriptRequestSchema } from "flue-grpc/agentindex/v1";

import { isBroken, openTransport } from "./connect.js";
import { run } from "./run.js";
import { showMessage } from "./show.js";
import { resume, targetFromEnvironment } from "./target.js";

await run(async (tool, id) => {
  if (!tool || !id) throw new Error("usage: follow TOOL ID");
  const client = createClient(AgentIndex, openTransport(targetFromEnvironment()));
  const request = create(ReadTranscriptRequestSchema, { tool, id, follow: true });

  await resume(async (progressed) => {
    for await (const { page } of client.readTranscript(request)) {
      if (!page) continue;
      page.messages.forEach(showMessage);
      // From here another call goes on, in this very file. Offsets are bigint.
      request.offset = page.next;
      request.revision = page.revision;
      progressed(false);
    }
  }, isBroken);
});
