// The verbs of a scenario (README.md of tests/conformance).
import { appendFileSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import type { Call, Caller } from "./callers.js";
import { match, matchRising } from "./expect.js";
import { CallFailed, isObject, lookUp, Mismatch, type Json, type JsonObject } from "./json.js";

const CALL_MS = 60_000;
const EVENTUALLY_MS = 30_000;
const EVENTUALLY_PAUSE_MS = 50;
const NEVER = new AbortController().signal;

export interface Step {
  call?: string;
  stream?: string;
  append?: string;
  write?: string;
  remove?: string;
  repeat?: number;
  request?: JsonObject;
  items?: string;
  limit_each?: number;
  break_after?: number;
  resume_by?: string;
  until?: number;
  cancel_after?: number;
  when_caught_up?: Step[];
  join?: boolean;
  token?: string;
  deadline_ms?: number;
  eventually?: boolean;
  save?: Record<string, string>;
  expect?: JsonObject;
  text?: string;
  steps?: Step[];
}

interface Outcome {
  response: Json;
  items: Json[];
  last: Json;
  calls: number;
  error?: CallFailed;
}

/** Does the steps of one scenario. */
export class Runner {
  readonly #variables = new Map<string, Json>();

  constructor(
    private readonly caller: Caller,
    private readonly token: string,
    private readonly home: string,
    run: string,
  ) {
    this.#variables.set("run", run);
  }

  /** Does steps in order; throws Mismatch at the first that is not as expected. */
  async steps(steps: Step[]): Promise<void> {
    for (const [index, step] of steps.entries()) {
      try {
        await this.#step(step);
      } catch (error) {
        if (!(error instanceof Mismatch)) throw error;
        throw new Mismatch(`step ${index + 1}: ${error.message}`);
      }
    }
  }

  async #step(step: Step): Promise<void> {
    if (step.repeat !== undefined) {
      for (let i = 1; i <= step.repeat; i++) {
        this.#variables.set("i", String(i));
        await this.steps(step.steps ?? []);
      }
    } else if (step.append !== undefined) {
      appendFileSync(this.#file(step.append), this.#text(step.text ?? ""));
    } else if (step.write !== undefined) {
      writeFileSync(this.#file(step.write), this.#text(step.text ?? ""));
    } else if (step.remove !== undefined) {
      rmSync(this.#file(step.remove));
    } else {
      await this.#callUntilExpected(step);
    }
  }

  #file(name: string): string {
    const path = join(this.home, this.#text(name));
    mkdirSync(dirname(path), { recursive: true });
    return path;
  }

  async #callUntilExpected(step: Step): Promise<void> {
    const end = Date.now() + EVENTUALLY_MS;
    for (;;) {
      try {
        return await this.#callOnce(step);
      } catch (error) {
        const again = error instanceof Mismatch && step.eventually && Date.now() < end;
        if (!again) throw error;
        await sleep(EVENTUALLY_PAUSE_MS);
      }
    }
  }

  async #callOnce(step: Step): Promise<void> {
    const outcome: Outcome = { response: null, items: [], last: null, calls: 0 };
    try {
      if (step.call) {
        const call = this.#call(step, step.call, this.#substitute(step.request ?? {}));
        for await (const response of this.caller.responses(call)) outcome.response = response;
      } else {
        await this.#stream(step, outcome);
      }
    } catch (error) {
      if (!(error instanceof CallFailed)) throw error;
      outcome.error = error;
    }
    try {
      this.#check(step, outcome);
    } catch (error) {
      if (!(error instanceof Mismatch)) throw error;
      throw new Mismatch(`${step.call ?? step.stream}: ${error.message}`);
    }
    this.#save(step, outcome);
  }

  #call(step: Step, method: string, request: Json, cancelled = NEVER): Call {
    const token = step.token ?? this.token;
    return { method, request, token, milliseconds: step.deadline_ms ?? CALL_MS, cancelled };
  }

  async #stream(step: Step, outcome: Outcome): Promise<void> {
    const request = this.#substitute(step.request ?? {}) as JsonObject;
    if (step.limit_each) request["limit"] = step.limit_each;
    let breakAfter = step.break_after ?? 0;
    for (;;) {
      outcome.calls += 1;
      const stopped = await this.#oneStream(step, request, breakAfter, outcome);
      const more = lookUp(outcome.last, "nextPageToken");
      if (!(stopped && breakAfter) && !(step.limit_each && more)) return;
      breakAfter = 0;
      if (step.resume_by === "offset") {
        request["offset"] = lookUp(outcome.last, "page.next") ?? "0";
        request["revision"] = lookUp(outcome.last, "page.revision");
      } else {
        request["pageToken"] = more ?? "";
      }
    }
  }

  /** Reads one call to its end, or until it has what the step wants. */
  async #oneStream(
    step: Step,
    request: Json,
    breakAfter: number,
    outcome: Outcome,
  ): Promise<boolean> {
    const wanted = Math.max(step.until ?? 0, breakAfter);
    let caughtUp = false;
    const canceller = new AbortController();
    const call = this.#call(step, step.stream ?? "", request, canceller.signal);
    for await (const response of this.caller.responses(call)) {
      outcome.last = response;
      const found = lookUp(response, step.items ?? "");
      if (Array.isArray(found)) outcome.items.push(...found);
      else if (found) outcome.items.push(found);
      if (!caughtUp && lookUp(response, "caughtUp") === true) {
        caughtUp = true;
        await this.steps(step.when_caught_up ?? []);
      }
      if (wanted && outcome.items.length >= wanted) return true;
      if (step.cancel_after && outcome.items.length >= step.cancel_after) canceller.abort();
    }
    return false;
  }

  #check(step: Step, outcome: Outcome): void {
    const expected = this.#substitute(step.expect ?? {}) as JsonObject;
    if (expected["error"] !== undefined) {
      if (!outcome.error) throw new Mismatch("succeeded where it has to fail");
      match("error", expected["error"], { ...outcome.error.failure });
      return;
    }
    if (outcome.error) throw new Mismatch(outcome.error.message);
    const { response, items, last, calls } = outcome;
    const values: JsonObject = {
      ...{ response, items, last, calls, count: items.length },
      first: items[0] ?? null,
      last_item: items.at(-1) ?? null,
      text: step.join ? items.join("") : null,
    };
    for (const [name, pattern] of Object.entries(expected)) {
      if (name === "each") items.forEach((item, i) => match(`items.${i}`, pattern, item));
      else if (name === "rising") matchRising(items, pattern as string);
      else match(name, pattern, values[name] ?? null);
    }
  }

  #save(step: Step, { response, items, last }: Outcome): void {
    const whole: Json = step.stream ? { items, last } : response;
    for (const [name, path] of Object.entries(step.save ?? {})) {
      const value = lookUp(whole, path);
      if (value === null) throw new Mismatch(`there is no ${path} in ${JSON.stringify(whole)}`);
      this.#variables.set(name, value);
    }
  }

  #substitute(value: Json): Json {
    if (Array.isArray(value)) return value.map((member) => this.#substitute(member));
    if (isObject(value)) {
      const members = Object.entries(value).map(([name, member]) => [name, this.#substitute(member)]);
      return Object.fromEntries(members) as JsonObject;
    }
    if (typeof value !== "string") return value;
    const whole = /^\$\{(\w+)\}$/.exec(value)?.[1];
    return whole === undefined ? this.#text(value) : (this.#variables.get(whole) ?? null);
  }

  #text(value: string): string {
    return value.replace(/\$\{(\w+)\}/g, (_, name: string) => String(this.#variables.get(name)));
  }
}
