// What the examples print: one line per item, tab-separated.
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { Role, type Hit, type Message, type Summary } from "flue-grpc/agentindex/v1";

export function showSummary(summary: Summary): void {
  const ended = summary.endedAt ? timestampDate(summary.endedAt).toISOString() : "-";
  const { tool, id, messageCount, title } = summary;
  print(ended, tool, id, `${messageCount} messages`, quoted(title));
}

/** Marks the matches, whose ranges are bytes of the snippet. */
export function showHit(hit: Hit): void {
  const bytes = Buffer.from(hit.snippet);
  let marked = "";
  let from = 0;
  for (const { start, end } of hit.ranges) {
    marked += `${bytes.toString("utf8", from, start)}[${bytes.toString("utf8", start, end)}]`;
    from = end;
  }
  marked += bytes.toString("utf8", from);
  print(hit.tool, hit.id, hit.offset, quoted(marked));
}

export function showMessage(message: Message): void {
  print(message.offset, Role[message.role], quoted(message.text));
}

/** A text on one line, with nothing in it that a terminal would obey. */
function quoted(text: string): string {
  const unsafe = /[\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;
  return JSON.stringify(text).replace(unsafe, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

function print(...fields: unknown[]): void {
  console.log(fields.join("\t"));
}
