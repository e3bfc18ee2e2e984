// RPCs whose messages are protobuf JSON, with Connect and with grpc-js.
import {
  fromJson,
  toJson,
  type DescMessage,
  type DescMethod,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  type DescService,
} from "@bufbuild/protobuf";
import { Code, ConnectError, createContextValues, type Transport } from "@connectrpc/connect";
import { status, type Client, type ServiceError } from "@grpc/grpc-js";
import { AgentIndex } from "flue-grpc/agentindex/v1";
import { Store } from "flue-grpc/store/v1";

import { openTransport } from "./examples/connect.js";
import { callMetadata, openClient, serverStream, unary } from "./examples/grpc-js.js";
import type { Target } from "./examples/target.js";
import { CallFailed, type Json } from "./json.js";
import { errorInfo } from "./status.js";

export interface Call {
  readonly method: string;
  readonly request: Json;
  readonly token: string;
  readonly milliseconds: number;
  readonly cancelled: AbortSignal;
}

/** Yields the responses of a call; leaving the iteration cancels it. */
export interface Caller {
  responses(call: Call): AsyncGenerator<Json>;
  close(): void;
}

const SERVICES: Record<string, DescService> = { Store, AgentIndex };

function findMethod(name: string): DescMethod {
  const [service = "", rpc = ""] = name.split("/");
  const found = SERVICES[service]?.methods.find((method) => method.name === rpc);
  if (!found) throw new Error(`there is no RPC ${name}`);
  return found;
}

type AnyUnary = DescMethodUnary<DescMessage, DescMessage>;
type AnyServerStreaming = DescMethodServerStreaming<DescMessage, DescMessage>;

function isUnary(method: DescMethod): method is AnyUnary {
  return method.methodKind === "unary";
}

function isServerStreaming(method: DescMethod): method is AnyServerStreaming {
  return method.methodKind === "server_streaming";
}

/** Makes every call with Connect's gRPC transport. */
export class ConnectCaller implements Caller {
  readonly #transports = new Map<string, Transport>();

  constructor(private readonly target: Target) {}

  async *responses(call: Call): AsyncGenerator<Json> {
    const { method: name, request, token, milliseconds, cancelled } = call;
    const method = findMethod(name);
    const message = fromJson(method.input, request);
    const controller = new AbortController();
    cancelled.addEventListener("abort", () => controller.abort());
    const how = [controller.signal, milliseconds, {}] as const;
    try {
      if (isUnary(method)) {
        const transport = this.#transport(token);
        const response = await transport.unary(method, ...how, message, createContextValues());
        yield toJson(method.output, response.message);
      } else if (isServerStreaming(method)) {
        const input = (async function* () {
          yield message;
        })();
        const stream = await this.#transport(token).stream(method, ...how, input);
        for await (const response of stream.message) yield toJson(method.output, response);
      }
    } catch (error) {
      throw connectFailure(ConnectError.from(error));
    } finally {
      controller.abort();
    }
  }

  close(): void {
    this.#transports.clear();
  }

  #transport(token: string): Transport {
    let transport = this.#transports.get(token);
    if (!transport) {
      transport = openTransport({ ...this.target, token });
      this.#transports.set(token, transport);
    }
    return transport;
  }
}

/** Makes every call with @grpc/grpc-js. */
export class GrpcJsCaller implements Caller {
  readonly #client: Client;

  constructor(private readonly target: Target) {
    this.#client = openClient(target);
  }

  async *responses(call: Call): AsyncGenerator<Json> {
    const { method: name, request, token, milliseconds, cancelled } = call;
    const method = findMethod(name);
    const message = fromJson(method.input, request);
    const metadata = callMetadata({ ...this.target, token });
    const options = { deadline: Date.now() + milliseconds };
    try {
      if (isUnary(method)) {
        const response = await unary(this.#client, method, message, metadata, options);
        yield toJson(method.output, response);
      } else if (isServerStreaming(method)) {
        const stream = serverStream(this.#client, method, message, metadata, options);
        cancelled.addEventListener("abort", () => stream.cancel());
        try {
          for await (const response of stream) yield toJson(method.output, response);
        } finally {
          stream.cancel();
        }
      }
    } catch (error) {
      throw grpcFailure(error as ServiceError);
    }
  }

  close(): void {
    this.#client.close();
  }
}

function connectFailure(error: ConnectError): CallFailed {
  const encoded = error.metadata.get("grpc-status-details-bin");
  const details = encoded ? Buffer.from(encoded, "base64") : undefined;
  const name = Code[error.code].replace(/(?<=[a-z])([A-Z])/g, "_$1").toUpperCase();
  const code = name === "CANCELED" ? "CANCELLED" : name;
  return new CallFailed({ code, message: error.rawMessage, ...errorInfo(details) });
}

function grpcFailure(error: ServiceError): CallFailed {
  if (!error.metadata) throw error;
  const [details] = error.metadata.get("grpc-status-details-bin");
  const info = errorInfo(typeof details === "string" ? Buffer.from(details) : details);
  return new CallFailed({ code: status[error.code], message: error.details, ...info });
}
