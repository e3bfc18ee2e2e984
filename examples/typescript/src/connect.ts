// A connection with Connect's gRPC transport.
import { connect as connectSocket } from "node:net";

import { Code, ConnectError, type Interceptor, type Transport } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";

import { checkTarget, RECEIVE_BYTES, type Target } from "./target.js";

/** Prepares a connection, which is made by the first call. */
export function openTransport(target: Target): Transport {
  checkTarget(target);
  const common = {
    readMaxBytes: RECEIVE_BYTES,
    pingIntervalMs: 60_000,
    interceptors: target.token ? [bearer(target.token)] : [],
  };
  if (target.address.startsWith("unix:")) {
    const path = target.address.slice("unix:".length);
    const nodeOptions = { createConnection: () => connectSocket(path) };
    return createGrpcTransport({ ...common, baseUrl: "http://localhost", nodeOptions });
  }
  if (!target.ca) return createGrpcTransport({ ...common, baseUrl: `http://${target.address}` });
  const nodeOptions = { ca: target.ca };
  return createGrpcTransport({ ...common, baseUrl: `https://${target.address}`, nodeOptions });
}

/**
 * The server or the connection went away, or it cut off a reader that paused. Of a
 * lost connection Node tells every stream that it was cancelled.
 */
export function isBroken(error: unknown): boolean {
  const { code, cause } = ConnectError.from(error);
  if (cause instanceof Error && "code" in cause && cause.code === "ENOENT") {
    return true; // the socket is not there: Connect calls that internal
  }
  return code === Code.Unavailable || code === Code.Aborted || code === Code.Canceled;
}

function bearer(token: string): Interceptor {
  return (next) => (request) => {
    request.header.set("authorization", `Bearer ${token}`);
    return next(request);
  };
}
