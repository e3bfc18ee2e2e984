// Patterns: what a value has to look like (README.md of tests/conformance).
import { isDeepStrictEqual } from "node:util";

import { isObject, lookUp, Mismatch, type Json, type JsonObject } from "./json.js";

const DEFAULTS: Json[] = [null, "", "0", 0, false, []];

/** Throws Mismatch unless `value` is as `pattern` says. */
export function match(path: string, pattern: Json, value: Json): void {
  if (isObject(pattern)) {
    matchObject(path, pattern, value);
  } else if (Array.isArray(pattern) && Array.isArray(value)) {
    if (pattern.length !== value.length) throw differs(path, pattern, value);
    pattern.forEach((wanted, i) => match(`${path}.${i}`, wanted, value[i] ?? null));
  } else if (!isDeepStrictEqual(pattern, value) && !(isDefault(pattern) && isDefault(value))) {
    throw differs(path, pattern, value);
  }
}

/** Throws Mismatch unless `field` rises strictly from item to item. */
export function matchRising(items: Json[], field: string): void {
  let earlier = -1n;
  items.forEach((item, i) => {
    const value = BigInt((lookUp(item, field) ?? 0) as string);
    if (value <= earlier) throw new Mismatch(`items.${i}.${field} is ${value} after ${earlier}`);
    earlier = value;
  });
}

function matchObject(path: string, pattern: JsonObject, value: Json): void {
  const { $matches, $set, $length } = pattern;
  let holds = true;
  if (typeof $matches === "string") {
    holds = typeof value === "string" && new RegExp($matches, "u").test(value);
  } else if ($set === true) {
    holds = !isDefault(value);
  } else if (typeof $length === "number") {
    holds = lengthOf(value) === $length;
  } else {
    for (const [name, wanted] of Object.entries(pattern)) {
      match(`${path}.${name}`, wanted, lookUp(value, name));
    }
  }
  if (!holds) throw differs(path, pattern, value);
}

function lengthOf(value: Json): number {
  return Array.isArray(value) ? value.length : [...String(value ?? "")].length;
}

function isDefault(value: Json): boolean {
  return DEFAULTS.some((d) => isDeepStrictEqual(d, value));
}

function differs(path: string, pattern: Json, value: Json): Mismatch {
  const [found, wanted] = [value, pattern].map((v) => JSON.stringify(v).slice(0, 300));
  return new Mismatch(`${path} is ${found}, not ${wanted}`);
}
