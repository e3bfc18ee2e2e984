// google.rpc.Status and ErrorInfo, for which there is no generated code.
import { createFileRegistry, fromBinary, fromJson, toJson } from "@bufbuild/protobuf";
import { file_google_protobuf_any, FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";

import type { JsonObject } from "./json.js";

const field = (name: string, number: number, type: string, more = {}) => ({
  name,
  number,
  type,
  label: "LABEL_OPTIONAL",
  jsonName: name,
  ...more,
});

const file = fromJson(FileDescriptorProtoSchema, {
  name: "google/rpc/errors.proto",
  package: "google.rpc",
  syntax: "proto3",
  dependency: ["google/protobuf/any.proto"],
  messageType: [
    {
      name: "Status",
      field: [
        field("code", 1, "TYPE_INT32"),
        field("message", 2, "TYPE_STRING"),
        field("details", 3, "TYPE_MESSAGE", {
          label: "LABEL_REPEATED",
          typeName: ".google.protobuf.Any",
        }),
      ],
    },
    {
      name: "ErrorInfo",
      field: [
        field("reason", 1, "TYPE_STRING"),
        field("domain", 2, "TYPE_STRING"),
        field("metadata", 3, "TYPE_MESSAGE", {
          label: "LABEL_REPEATED",
          typeName: ".google.rpc.ErrorInfo.MetadataEntry",
        }),
      ],
      nestedType: [
        {
          name: "MetadataEntry",
          options: { mapEntry: true },
          field: [field("key", 1, "TYPE_STRING"), field("value", 2, "TYPE_STRING")],
        },
      ],
    },
  ],
});
const registry = createFileRegistry(file, (name) =>
  name === "google/protobuf/any.proto" ? file_google_protobuf_any : undefined,
);

/** Reads reason, domain and metadata from the trailer `grpc-status-details-bin`. */
export function errorInfo(status: Uint8Array | undefined): JsonObject {
  const statusType = registry.getMessage("google.rpc.Status");
  const infoType = registry.getMessage("google.rpc.ErrorInfo");
  if (!status || !statusType || !infoType) return {};
  const { details } = fromBinary(statusType, status) as unknown as {
    details: { typeUrl: string; value: Uint8Array }[];
  };
  const info = details.find(({ typeUrl }) => typeUrl.endsWith("/google.rpc.ErrorInfo"));
  return info ? (toJson(infoType, fromBinary(infoType, info.value)) as JsonObject) : {};
}
