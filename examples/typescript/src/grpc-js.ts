// A connection with @grpc/grpc-js, typed by the same generated descriptors.
import {
  fromBinary,
  toBinary,
  type DescMessage,
  type DescMethod,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  type MessageShape,
} from "@bufbuild/protobuf";
import {
  Client,
  credentials,
  Metadata,
  status,
  type CallOptions,
  type ClientReadableStream,
  type ServiceError,
} from "@grpc/grpc-js";

import { checkTarget, RECEIVE_BYTES, type Target } from "./target.js";

/** Prepares a connection, which is made by the first call. */
export function openClient(target: Target): Client {
  checkTarget(target);
  const channel = target.ca
    ? credentials.createSsl(Buffer.from(target.ca))
    : credentials.createInsecure();
  return new Client(target.address, channel, {
    "grpc.max_receive_message_length": RECEIVE_BYTES,
    "grpc.keepalive_time_ms": 60_000,
    "grpc.keepalive_timeout_ms": 20_000,
    "grpc.initial_reconnect_backoff_ms": 100,
    "grpc.max_reconnect_backoff_ms": 2_000,
  });
}

/** The metadata of every call to `target`. */
export function callMetadata(target: Target): Metadata {
  const metadata = new Metadata();
  if (target.token) metadata.set("authorization", `Bearer ${target.token}`);
  return metadata;
}

/** Makes a server-streaming call; iterate over it with `for await`. */
export function serverStream<I extends DescMessage, O extends DescMessage>(
  client: Client,
  method: DescMethodServerStreaming<I, O>,
  request: MessageShape<I>,
  metadata: Metadata,
  options: CallOptions = {},
): ClientReadableStream<MessageShape<O>> {
  const { path, encode, decode } = codec(method);
  return client.makeServerStreamRequest(path, encode, decode, request, metadata, options);
}

/** Makes a unary call. */
export function unary<I extends DescMessage, O extends DescMessage>(
  client: Client,
  method: DescMethodUnary<I, O>,
  request: MessageShape<I>,
  metadata: Metadata,
  options: CallOptions = {},
): Promise<MessageShape<O>> {
  const { path, encode, decode } = codec(method);
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(path, encode, decode, request, metadata, options, (error, value) => {
      if (value) resolve(value);
      else reject(error ?? new Error("a unary call ended without a response"));
    });
  });
}

/** The server stopped, the connection went away, or a reader that paused was cut off. */
export function isBroken(error: unknown): boolean {
  const { code } = error as Partial<ServiceError>;
  return code === status.UNAVAILABLE || code === status.ABORTED || code === status.CANCELLED;
}

function codec<I extends DescMessage, O extends DescMessage>(
  method: DescMethod & { input: I; output: O },
) {
  return {
    path: `/${method.parent.typeName}/${method.name}`,
    encode: (message: MessageShape<I>) => Buffer.from(toBinary(method.input, message)),
    decode: (bytes: Buffer) => fromBinary(method.output, bytes),
  };
}
