// JSON values, and the words that failures have in the scenarios.
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type JsonObject = { [name: string]: Json };

export interface Failure {
  readonly code: string;
  readonly message: string;
  readonly reason?: string;
  readonly metadata?: JsonObject;
}

/** An RPC failed. */
export class CallFailed extends Error {
  constructor(readonly failure: Failure) {
    super(JSON.stringify(failure));
  }
}

/** Something is not as the scenario says. */
export class Mismatch extends Error {}

export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Follows a path such as `items.0.id`; null when there is nothing. */
export function lookUp(value: Json | undefined, path: string): Json {
  let found: Json | undefined = value;
  for (const name of path.split(".")) {
    if (Array.isArray(found)) found = found[Number(name)];
    else if (isObject(found)) found = found[name];
    else return null;
  }
  return found ?? null;
}
