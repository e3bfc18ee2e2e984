// Where a server is, and when a broken call is worth another.
import { readFileSync, statSync } from "node:fs";
import { isIP } from "node:net";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/** `address` is `unix:/path` or `host:port`; `ca`, a PEM text, switches TLS on. */
export interface Target {
  readonly address: string;
  readonly token?: string;
  readonly ca?: string;
}

/** What a client of the Store allows: a message of 32 MiB and its envelope. */
export const RECEIVE_BYTES = 36 * 1024 * 1024;

/** What a search shows, over as many calls as that takes. */
export const MOST_HITS = 50;

const ATTEMPTS = 8; // of a call that has brought nothing yet
const PATIENCE_MS = 600_000; // with one that has
const FIRST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 2000;

/**
 * Reads FLUE_ADDRESS, FLUE_TOKEN_FILE and FLUE_CA_FILE. Without an address it is
 * this user's own server on its default socket.
 */
export function targetFromEnvironment(): Target {
  const { FLUE_ADDRESS, FLUE_TOKEN_FILE, FLUE_CA_FILE } = process.env;
  return {
    address: FLUE_ADDRESS || `unix:${checkOwner(defaultSocket())}`,
    ...(FLUE_TOKEN_FILE ? { token: readToken(FLUE_TOKEN_FILE) } : {}),
    ...(FLUE_CA_FILE ? { ca: readFileSync(FLUE_CA_FILE, "utf8") } : {}),
  };
}

/** Refuses to send a token over plaintext to another machine. */
export function checkTarget(target: Target): void {
  if (!target.token || target.ca || target.address.startsWith("unix:")) return;
  const host = target.address.replace(/:\d+$/, "").replace(/^\[|\]$/g, "");
  const loopback = isIP(host) === 4 ? host.startsWith("127.") : host === "::1";
  if (!loopback) throw new Error(`a token is sent to ${host} only over TLS`);
}

/**
 * Runs `call` until it ends well, waiting longer after each failure, for ten minutes
 * once it has begun. `call` says with `progressed` that something arrived, which
 * forgives earlier failures, and whether that was the last of what is wanted: a break
 * after it is the end. It starts from wherever it came to. `isBroken` tells the failures
 * that are worth another call.
 */
export async function resume(
  call: (progressed: (isLast: boolean) => void) => Promise<void>,
  isBroken: (error: unknown) => boolean,
): Promise<void> {
  let failures = 0;
  let hasBegun = false;
  let isComplete = false;
  let failingSince = 0;
  const progressed = (isLast: boolean) => {
    failures = 0;
    hasBegun = true;
    isComplete = isLast;
  };
  for (;;) {
    try {
      return await call(progressed);
    } catch (error) {
      if (isComplete && isBroken(error)) return;
      if (!failures) failingSince = Date.now();
      failures += 1;
      const isLast = hasBegun ? Date.now() > failingSince + PATIENCE_MS : failures === ATTEMPTS;
      if (isLast || !isBroken(error)) throw error;
      const wait = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (failures - 1));
      await sleep(wait * (0.5 + Math.random() / 2));
    }
  }
}

/**
 * Takes the first token of a server's token file, whose lines are `ROLE TOKEN
 * NAME`, or of a file that holds just a token.
 */
function readToken(file: string): string {
  for (const line of readFileSync(file, "utf8").split("\n")) {
    const fields = line.trim().split(/\s+/);
    if (!fields[0] || fields[0].startsWith("#")) continue;
    return fields.length === 3 && fields[1] ? fields[1] : fields[0];
  }
  throw new Error(`there is no token in ${file}`);
}

/**
 * Refuses a socket that another user, who is not root, has put there or can put there.
 * A missing one passes.
 */
function checkOwner(socket: string): string {
  for (const path of [dirname(socket), socket]) {
    const owner = statSync(path, { throwIfNoEntry: false })?.uid ?? 0;
    if (owner !== 0 && owner !== process.geteuid?.()) {
      throw new Error(`${path} belongs to user ${owner}`);
    }
  }
  return socket;
}

function defaultSocket(): string {
  const { XDG_RUNTIME_DIR, XDG_DATA_HOME } = process.env;
  if (XDG_RUNTIME_DIR) return join(XDG_RUNTIME_DIR, "flue-grpc", "flue.sock");
  return join(XDG_DATA_HOME || join(homedir(), ".local", "share"), "flue-grpc", "flue.sock");
}
