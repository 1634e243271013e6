import { sleep } from "../../src/base/timer.ts";
import { messageOf } from "../../src/model/failure.ts";
import type { DataType } from "../../src/model/value.ts";
import { HELLO_MS, type Hello, pageSchema, readSchema, SHUTDOWN_MS, VALIDATE_MS, validatedSchema } from "./contract.ts";
import { PluginLink } from "./link.ts";
import { runPlugin } from "./pipe.ts";
import { deadlineOf, emptySchema, type PluginSource, pointsOf } from "./session.ts";
import { readingOf } from "./values.ts";

/** The checks of the specification, in their order. Those with a device need one that answers. */
export const CHECKS = [
  { name: "hello", what: "the first line is a hello of this contract" },
  { name: "quiet", what: "it sends only answers to requests" },
  { name: "unknown-verb", what: "a verb that it does not know is answered with an error" },
  { name: "validate-empty", what: "details without host and port have a problem" },
  { name: "long-line", what: "a request of 200 KiB is answered" },
  { name: "not-open", what: "read before open is answered with an error" },
  { name: "validate", what: "the details have no problem", needsDevice: true },
  { name: "open", what: "the device is opened", needsDevice: true },
  { name: "read", what: "each address has one reading, in the order asked, of its type", needsDevice: true },
  { name: "read-unknown", what: "an address that the device does not have is a fault of its own", needsDevice: true },
  { name: "discover", what: "the pages end, and no address comes twice", needsDevice: true },
  { name: "reopen", what: "after close it is opened and read again", needsDevice: true },
  { name: "shutdown", what: "it ends within 2 s of shutdown" },
  { name: "end-of-input", what: "it ends within 2 s of the end of its input" },
] as const satisfies readonly { readonly name: string; readonly what: string; readonly needsDevice?: true }[];
export type CheckName = (typeof CHECKS)[number]["name"];

export interface CheckResult {
  readonly name: CheckName;
  readonly outcome: "passed" | "failed" | "skipped";
  /** Why it failed or was skipped, or what was seen. */
  readonly detail: string;
}

export interface CheckTarget {
  readonly command: readonly string[];
  /** Absent: no device to try it with. Its type absent: the first of the plugin's hello. */
  readonly source?: Omit<PluginSource, "type"> & { readonly type?: string };
  readonly points: readonly { readonly address: string; readonly type: DataType }[];
  /** Of one request, ms. */
  readonly answerMs: number;
  readonly signal: AbortSignal;
}

/** How long it is listened to whether it speaks by itself, ms. */
const QUIET_MS = 300;
const LONG = 200 * 1024;
/** Not an address of any device. */
const UNKNOWN_ADDRESS = "no such address 4711";
const MAX_PAGES = 1000;

class Unfit extends Error {}
class Skipped extends Error {}

/** Plays the checks against a plugin; after one that failed, those that need the same process are skipped. */
export async function* checkPlugin(target: CheckTarget): AsyncGenerator<CheckResult> {
  const round = new CheckRound(target);
  let broken: CheckName | undefined;
  try {
    for (const { name, ...check } of CHECKS) {
      if (target.signal.aborted) return;
      if (broken !== undefined && name !== "end-of-input") yield { name, outcome: "skipped", detail: `${broken} failed` };
      else if ("needsDevice" in check && !target.source) yield { name, outcome: "skipped", detail: "no --details of a device were given" };
      else {
        const result = await resultOf(name, () => round[name]());
        if (result.outcome === "failed") broken = name;
        yield result;
      }
    }
  } finally {
    round.end();
  }
}

async function resultOf(name: CheckName, run: () => Promise<string>): Promise<CheckResult> {
  try {
    return { name, outcome: "passed", detail: await run() };
  } catch (error) {
    return { name, outcome: error instanceof Skipped ? "skipped" : "failed", detail: messageOf(error) };
  }
}

class CheckRound implements Record<CheckName, () => Promise<string>> {
  readonly #target: CheckTarget;
  #link: PluginLink;
  #hello: Hello | undefined;

  constructor(target: CheckTarget) {
    this.#target = target;
    this.#link = this.#start();
  }

  /** Leaves nothing running. */
  end(): void {
    this.#link.kill();
  }

  async hello(): Promise<string> {
    this.#hello = await this.#link.hello(HELLO_MS, this.#target.signal);
    const { name, version, types, capabilities } = this.#hello;
    if (!(types as readonly string[]).includes(this.#type)) throw new Unfit(`it is for ${types.join(", ")}, not for ${this.#type}`);
    return `${name} ${version} for ${types.join(", ")}; ${capabilities.max_points} variables in a read`;
  }

  async quiet(): Promise<string> {
    await sleep(QUIET_MS, this.#target.signal);
    if (this.#link.failure) throw this.#link.failure;
    return "";
  }

  async "unknown-verb"(): Promise<string> {
    return this.#refused("no_such_verb", {});
  }

  async "validate-empty"(): Promise<string> {
    const source = { type: this.#type, details: {}, addresses: [], settings: {} };
    const { problems } = await this.#result(validatedSchema, "validate", { source, a_key_of_a_later_version: true });
    if (problems.length === 0) throw new Unfit("it has no problem with details that have no host and no port");
    return problems.join("; ");
  }

  async "long-line"(): Promise<string> {
    const source = { type: this.#type, details: {}, addresses: [], settings: { long: "x".repeat(LONG) } };
    await this.#link.ask("validate", { source }, VALIDATE_MS, this.#target.signal);
    return "";
  }

  async "not-open"(): Promise<string> {
    return this.#refused("read", { points: [{ address: UNKNOWN_ADDRESS, type: "uint16" }], ...this.#deadline });
  }

  async validate(): Promise<string> {
    const { problems } = await this.#result(validatedSchema, "validate", { source: this.#source });
    if (problems.length > 0) throw new Unfit(problems.join("; "));
    return "";
  }

  async open(): Promise<string> {
    await this.#result(emptySchema, "open", { source: this.#source, ...this.#deadline });
    return "";
  }

  async read(): Promise<string> {
    const { points } = this.#target;
    if (points.length === 0) throw new Skipped("no --read of an address was given");
    const most = this.#hello?.capabilities.max_points ?? 1;
    const said: string[] = [];
    for (let from = 0; from < points.length; from += most) {
      const part = points.slice(from, from + most);
      for (const [at, raw] of (await this.#read(part)).entries()) {
        const { address = "", type = { scalar: "auto" } as const } = part[at] ?? {};
        const reading = readingOf(raw, type);
        if (reading.quality === "bad")
          throw new Unfit(`${address}: ${reading.fault}${reading.detail === undefined ? "" : `: ${reading.detail}`}`);
        said.push(`${address} = ${String(reading.value)}`);
      }
    }
    return said.join(", ");
  }

  async "read-unknown"(): Promise<string> {
    const [raw] = await this.#read([{ address: UNKNOWN_ADDRESS, type: { scalar: "uint16" } }]);
    if (raw && "fault" in raw) return raw.fault;
    throw new Unfit(`it gives a value for the address ${JSON.stringify(UNKNOWN_ADDRESS)}`);
  }

  async discover(): Promise<string> {
    if (!this.#hello?.capabilities.discover) throw new Skipped("its hello says that it cannot");
    const seen = new Set<string>();
    let cursor: string | null = null;
    for (let page = 0; page < MAX_PAGES; page++) {
      const { variables, next }: { variables: readonly { address: string }[]; next: string | null } = await this.#result(
        pageSchema,
        "discover",
        { cursor, limit: 2, ...this.#deadline },
      );
      if (variables.length > 2) throw new Unfit(`a page has ${variables.length} variables, and 2 were asked for`);
      for (const { address } of variables) {
        if (seen.has(address)) throw new Unfit(`${address} comes twice`);
        seen.add(address);
      }
      if (next === null) return `${seen.size} variables`;
      cursor = next;
    }
    throw new Unfit(`there are more than ${MAX_PAGES} pages of 2 variables`);
  }

  async reopen(): Promise<string> {
    await this.#result(emptySchema, "close", {});
    await this.open();
    const [first] = this.#target.points;
    if (first) await this.#read([first]);
    await this.#result(emptySchema, "close", {});
    return "";
  }

  async shutdown(): Promise<string> {
    if ((await this.#link.shutDown()) === "killed") throw new Unfit(`it still ran ${SHUTDOWN_MS} ms after shutdown`);
    return "";
  }

  async "end-of-input"(): Promise<string> {
    this.#link.kill();
    this.#link = this.#start();
    await this.#link.hello(HELLO_MS, this.#target.signal);
    if ((await this.#link.endInput()) === "killed") throw new Unfit(`it still ran ${SHUTDOWN_MS} ms after the end of its input`);
    return "";
  }

  get #type(): string {
    return this.#target.source?.type ?? this.#hello?.types[0] ?? "";
  }

  get #source(): object {
    const { details, ...rest } = this.#target.source ?? { details: {} };
    return { ...rest, type: this.#type, details: { type: this.#type, ...details } };
  }

  get #deadline(): { readonly deadline_ms: number } {
    return { deadline_ms: deadlineOf(this.#target.answerMs) };
  }

  #start(): PluginLink {
    return new PluginLink((events) => runPlugin(this.#target.command, events));
  }

  #result<T>(...[schema, verb, fields]: [schema: Parameters<typeof PluginLink.prototype.result<T>>[0], verb: string, fields: object]) {
    return this.#link.result(schema, verb, fields, this.#target.answerMs, this.#target.signal);
  }

  async #read(points: CheckTarget["points"]) {
    const asked = pointsOf(points.map(({ address, type }) => ({ address: { pluginText: address }, type })));
    const { readings } = await this.#result(readSchema, "read", { points: asked, ...this.#deadline });
    if (readings.length !== points.length) throw new Unfit(`${readings.length} readings for ${points.length} addresses`);
    return readings;
  }

  async #refused(verb: string, fields: object): Promise<string> {
    const answer = await this.#link.ask(verb, fields, this.#target.answerMs, this.#target.signal);
    if ("error" in answer) return answer.error.message;
    throw new Unfit(`${verb} is answered with a result`);
  }
}
