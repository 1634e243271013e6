/**
 * Plugin of the collector (docs/plugin-protocol.md) for a device that takes lines over TCP.
 *
 *     GET name   ->   name=21.5      or name=? where it has none
 *     LIST       ->   name,name,...
 *
 * Runs as it is with Node 24, without any package. Copy it, and replace Device by what your machine speaks.
 */
import net from "node:net";
import { stdin, stdout } from "node:process";
import { createInterface } from "node:readline";

interface Source {
  readonly details: { readonly port?: unknown };
  readonly addresses: readonly string[];
  readonly settings: Readonly<Record<string, string | number>>;
}
interface Request {
  readonly id: number;
  readonly verb: string;
  readonly source: Source;
  readonly points: readonly { readonly address: string; readonly type: string | null }[];
  readonly cursor: string | null;
  readonly limit: number;
  readonly deadline_ms: number;
}
type Reading = { readonly value: boolean | number | string; readonly type?: string } | { readonly fault: string; readonly detail: string };

const HELLO = {
  contract: 1,
  name: "line-sample",
  version: "1.0",
  types: ["odac", "vendor_b", "plastcontrol"],
  capabilities: { max_points: 100, discover: true },
  settings_schema: { type: "object", properties: { prefix: { type: "string" } }, additionalProperties: false },
};
/** A line of the device. */
const MAX_LINE = 65_536;

/** `about` is a reason where the source failed, a fault where something cannot be read. */
class PluginError extends Error {
  readonly about: object;
  constructor(about: object, message: string) {
    super(message);
    this.about = about;
  }
}
const failed = (type: string, message: string): PluginError => new PluginError({ reason: { type } }, message);

/** Reads only: it sends GET and LIST, and nothing else. */
class Device {
  readonly #socket: net.Socket;
  readonly #prefix: string;
  #received = "";
  #waiting: { resolve: (line: string) => void; reject: (error: Error) => void } | undefined;

  private constructor(socket: net.Socket, prefix: string) {
    this.#socket = socket;
    this.#prefix = prefix;
    socket.setEncoding("ascii");
    socket.on("data", (text: string) => this.#onData(text));
    socket.on("close", () => this.#waiting?.reject(failed("CONNECTION_CLOSED", "the device closed the connection")));
  }

  /** Connects to the address that the collector has looked up, and nowhere else. */
  static async open({ details, addresses, settings }: Source, deadlineMs: number): Promise<Device> {
    const socket = net.connect({ host: addresses[0] ?? "", port: Number(details.port) });
    const connected = new Promise<void>((resolve, reject) => {
      socket.once("connect", resolve);
      socket.on("error", (error: Error & { code?: string }) =>
        reject(failed(error.code === "ECONNREFUSED" ? "CONNECTION_REFUSED" : "UNKNOWN", error.message)),
      );
    });
    await within(connected, deadlineMs).catch((error: unknown) => {
      socket.destroy();
      throw error;
    });
    return new Device(socket, String(settings["prefix"] ?? ""));
  }

  async read({ address, type }: Request["points"][number]): Promise<Reading> {
    if (!/^[\x21-\x7e][\x20-\x7e]*$/.test(address)) return { fault: "address_invalid", detail: "expected printable ASCII" };
    const name = this.#prefix + address;
    const answer = await this.ask(`GET ${name}`);
    if (!answer.startsWith(`${name}=`)) throw failed("UNKNOWN", `the device answered something else: ${answer.slice(0, 80)}`);
    const text = answer.slice(name.length + 1);
    return text === "?" ? { fault: "not_found", detail: `the device has no ${name}` } : readingOf(text, type);
  }

  ask(command: string): Promise<string> {
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
      if (this.#socket.destroyed) reject(failed("CONNECTION_CLOSED", "the device closed the connection"));
      else this.#socket.write(`${command}\r\n`);
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  #onData(text: string): void {
    this.#received += text;
    const end = this.#received.indexOf("\n");
    if (end < 0 && this.#received.length > MAX_LINE) this.#socket.destroy();
    if (end < 0) return;
    this.#waiting?.resolve(this.#received.slice(0, end).trimEnd());
    this.#received = this.#received.slice(end + 1);
  }
}

/** The value as JSON has it; 64-bit numbers as digits in a text. */
function readingOf(text: string, wanted: string | null): Reading {
  if (wanted === "string" || wanted === "int64" || wanted === "uint64") return { value: text };
  if (wanted === "bool") return { value: text === "1" || text === "true" };
  const number = Number(text);
  if (text === "" || Number.isNaN(number)) return { fault: "not_a_number", detail: text.slice(0, 80) };
  return { value: number, type: wanted ?? "float64" };
}

/** Once its time is over, what was asked of the device may still come: it is closed, so that no later answer is taken for another. */
async function within<T>(work: Promise<T>, deadlineMs: number): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(failed("TIMEOUT", "the device did not answer in time")), deadlineMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

let device: Device | undefined;

function opened(): Device {
  if (!device) throw failed("UNKNOWN", "no device is open");
  return device;
}

function close(): object {
  device?.close();
  device = undefined;
  return {};
}

const VERBS: Readonly<Record<string, (request: Request) => Promise<object> | object>> = {
  validate({ source: { details, settings } }) {
    const unknown = Object.keys(settings).filter((name) => name !== "prefix");
    return {
      problems: [
        ...(Number.isInteger(details.port) ? [] : ["details.port is missing"]),
        ...unknown.slice(0, 10).map((name) => `settings.${name.slice(0, 80)} is not known; this plugin has prefix`),
      ],
    };
  },
  async open({ source, deadline_ms: deadlineMs }) {
    close();
    device = await Device.open(source, deadlineMs);
    return {};
  },
  async read({ points, deadline_ms: deadlineMs }) {
    const from = opened();
    const all = async (): Promise<Reading[]> => {
      const readings = [];
      for (const point of points) readings.push(await from.read(point));
      return readings;
    };
    return { readings: await within(all(), deadlineMs) };
  },
  async discover({ cursor, limit, deadline_ms: deadlineMs }) {
    const names = (await within(opened().ask("LIST"), deadlineMs)).split(",").sort();
    const start = Number(cursor ?? 0);
    const page = names.slice(start, start + limit);
    return {
      variables: page.map((name) => ({ address: name, name, type: "float64" })),
      next: start + limit < names.length ? String(start + limit) : null,
    };
  },
  close,
};

const say = (message: object): void => void stdout.write(`${JSON.stringify(message)}\n`);

async function answer(request: Request): Promise<object> {
  const verb = Object.hasOwn(VERBS, request.verb) ? VERBS[request.verb] : undefined;
  if (!verb) return { error: { fault: "device_error", message: "this plugin has no such verb" } };
  try {
    return { result: await verb(request) };
  } catch (error) {
    if (!(error instanceof PluginError)) throw error;
    if (!("fault" in error.about)) close();
    return { error: { ...error.about, message: error.message.slice(0, 1000) } };
  }
}

say({ hello: HELLO });
for await (const line of createInterface({ input: stdin })) {
  const request = JSON.parse(line) as Request;
  if (request.verb === "shutdown") break;
  say({ id: request.id, ...(await answer(request)) });
}
close();
