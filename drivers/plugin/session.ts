import * as z from "zod";
import { FaultError } from "../../src/model/fault.ts";
import { ReasonError } from "../../src/model/reason.ts";
import { type DataType, formatDataType, parseDataType, type Reading } from "../../src/model/value.ts";
import type { Warning } from "../../src/model/warning.ts";
import type { Discovered, DriverContext, Limits, Point, Request, Session } from "../driver.ts";
import {
  CLOSE_MS,
  type Hello,
  issuesOf,
  looseReadSchema,
  PAGE_VARIABLES,
  pageSchema,
  readingSchema,
  VALIDATE_MS,
  validatedSchema,
} from "./contract.ts";
import type { PluginEnds } from "./ends.ts";
import type { PluginLink } from "./link.ts";
import { readingOf } from "./values.ts";

/** An address as its plugin understands it. */
export interface PluginAddress {
  readonly pluginText: string;
}

export type PluginRequest = Request<PluginAddress>;

/** What a plugin gets of its source. */
export interface PluginSource {
  readonly type: string;
  readonly details: object;
  /** The addresses that the host of the details has, as the policy lets them through. */
  readonly addresses: readonly string[];
  readonly settings: Readonly<Record<string, string | number>>;
}

/** Variables of one discovery, and characters of the cursors that are kept to see that it goes on. */
const [MAX_DISCOVERED, MAX_PAGES] = [100_000, 10_000];
/** Of a request's time, what the plugin is given for the device: the rest is the way there and back. */
const OWN_PART = 0.8;

export const emptySchema = z.record(z.string(), z.unknown());
export const deadlineOf = (answerMs: number): number => Math.max(1, Math.floor(answerMs * OWN_PART));
const typeText = ({ scalar, ...rest }: DataType): string | null => (scalar === "auto" ? null : formatDataType({ scalar, ...rest }));
export const pointsOf = (points: readonly Pick<Point<PluginAddress>, "address" | "type">[]): readonly object[] =>
  points.map(({ address, type }) => ({ address: address.pluginText, type: typeText(type) }));

/** A device that a plugin reads. */
export class PluginSession implements Session<PluginAddress, PluginRequest, Limits> {
  readonly limits: Limits;
  readonly #link: PluginLink;
  readonly #hello: Hello;
  readonly #ends: PluginEnds;

  private constructor(link: PluginLink, hello: Hello, ends: PluginEnds) {
    this.#link = link;
    this.#hello = hello;
    this.#ends = ends;
    this.limits = { maxPoints: hello.capabilities.max_points, maxBytes: Number.MAX_SAFE_INTEGER, inFlight: 1 };
  }

  /** Has the plugin look over its source, then open the device. Takes the plugin over, also where it throws. Throws ReasonError. */
  static async open(link: PluginLink, hello: Hello, source: PluginSource, ends: PluginEnds, ctx: DriverContext): Promise<PluginSession> {
    const { timeouts, signal } = ctx;
    try {
      if (!(hello.types as readonly string[]).includes(source.type))
        throw new ReasonError("UNKNOWN", `the plugin ${hello.name} is for ${hello.types.join(", ")}, not for ${source.type}`, {
          condition: "configuration_invalid",
        });
      const { problems } = await link.result(validatedSchema, "validate", { source }, VALIDATE_MS, signal);
      if (problems.length > 0)
        throw new ReasonError("UNKNOWN", `the plugin ${hello.name} says: ${problems.join("; ")}`, { condition: "configuration_invalid" });
      const openMs = timeouts.connectMs + timeouts.answerMs;
      await link.result(emptySchema, "open", { source, deadline_ms: deadlineOf(openMs) }, openMs, signal);
      return new PluginSession(link, hello, ends);
    } catch (error) {
      void link.shutDown();
      throw error instanceof FaultError ? new ReasonError("UNKNOWN", error.message, { cause: error }) : error;
    }
  }

  async read({ points }: PluginRequest, { timeouts, signal }: DriverContext): Promise<readonly Reading[]> {
    const fields = { points: pointsOf(points), deadline_ms: deadlineOf(timeouts.answerMs) };
    const { readings } = await this.#link.result(looseReadSchema, "read", fields, timeouts.answerMs, signal);
    if (readings.length !== points.length)
      throw this.#link.refuse(`its answer to read has ${readings.length} readings for ${points.length} variables`);
    return points.map(({ type }, at) => {
      const { data, error } = readingSchema.safeParse(readings[at]);
      if (data) return readingOf(data, type);
      return { quality: "bad", fault: "device_error", detail: `the plugin gives no reading of its contract: ${issuesOf(error)}` };
    });
  }

  warnings(): readonly Warning[] {
    const warning = this.#ends.warning();
    return warning === undefined ? [] : [warning];
  }

  async *discover({ timeouts, signal, progress }: DriverContext): AsyncGenerator<Discovered> {
    if (!this.#hello.capabilities.discover)
      throw new ReasonError("UNKNOWN", `the plugin ${this.#hello.name} cannot list what a device has`);
    const seen = new Set<string>();
    let cursor: string | null = null;
    let found = 0;
    do {
      const fields: object = { cursor, limit: PAGE_VARIABLES, deadline_ms: deadlineOf(timeouts.answerMs) };
      const { variables, next } = await this.#link.result(pageSchema, "discover", fields, timeouts.answerMs, signal);
      for (const { type, path, unit, comment, ...named } of variables)
        yield {
          ...named,
          type: type === null ? undefined : parseDataType(type),
          ...(path && { path }),
          ...(unit !== undefined && { unit }),
          ...(comment !== undefined && { comment }),
        };
      found += variables.length;
      progress?.(found, undefined);
      if (next !== null && (seen.has(next) || seen.size === MAX_PAGES)) throw this.#link.refuse("its pages of discover do not end");
      if (found > MAX_DISCOVERED) throw this.#link.refuse(`it discovers more than ${MAX_DISCOVERED} variables`);
      if (next !== null) seen.add(next);
      cursor = next;
    } while (cursor !== null);
  }

  alive(): boolean {
    return this.#link.isAlive;
  }

  async close(): Promise<void> {
    if (this.#link.isAlive)
      await this.#link.result(emptySchema, "close", {}, CLOSE_MS, new AbortController().signal).catch(() => undefined);
    await this.#link.shutDown();
  }
}
