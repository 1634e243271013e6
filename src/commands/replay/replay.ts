import net from "node:net";
import { loadPolicy, policyFile } from "../../configuration/policy-file.ts";
import { SettingsError } from "../../configuration/strict-yaml.ts";
import { CaptureError, type CaptureFacts, endText, factsWords, readCapture } from "../../lib/capture/read.ts";
import { listenRefusal, permitOf } from "../../lib/policy.ts";
import { errorCode } from "../../model/failure.ts";
import { toJson } from "../../model/json.ts";
import { nearest } from "../../model/nearest.ts";
import type { Policy } from "../../model/policy.ts";
import { type CommandIo, complain, EXIT, type ExitCode, StoppedError, UsageError } from "../io.ts";
import { writeLines } from "../lines.ts";
import { type Asks, ReplayDevice, type Unknown } from "./device.ts";
import { REPLAY_TYPES } from "./protocols.ts";
import { type RecordedDevice, Recording, type Wish } from "./recording.ts";

/** The command line's options, as typed. */
export interface ReplayVerbOptions {
  readonly config?: string;
  readonly json?: boolean;
  readonly listen?: string;
  readonly device?: string;
  readonly type?: string;
}

const LOOPBACK = "127.0.0.1";
/** Below it, only root may listen. */
const FIRST_FREE_PORT = 1024;
const MOVED_BY = 1000;
/** Of a person who waits for a long file. */
const TOLD_EVERY_MS = 2000;
/** Different unknown requests that are printed; further ones are counted. */
const MAX_SHOWN = 100;
const SHOWN_BYTES = 64;

/** `collector replay CAPTURE`: serves the answers of a recorded device until the person stops it. Throws UsageError. */
export async function replay(io: CommandIo, capture: string, options: ReplayVerbOptions): Promise<ExitCode> {
  const wish = wishOf(options);
  const policy = policyFor(options.config);
  const { recording, facts } = await recordingOf(io, capture, wish);
  const name = capture === "-" ? "the capture" : capture;
  for (const line of factsWords(facts)) complain(io, `${name}: ${line}`);
  const device = chosen(recording.devices, name, options);
  const { host, port } = placeOf(options.listen, device);
  const refusal = listenRefusal(policy, `${host.includes(":") ? `[${host}]` : host}:${port}`);
  if (refusal !== undefined) throw new UsageError(`--listen: ${refusal}`);
  const report = new Report(io, options.json === true);
  const running = await started(device, host, port, report);
  report.listening(name, facts, recording, device, { address: host, port: running.port }, policy);
  try {
    await stopped(io.signal);
  } finally {
    await running.close();
  }
  report.summary(running.asks);
  return EXIT.good;
}

function wishOf({ device, type }: ReplayVerbOptions): Wish {
  if (type !== undefined && !REPLAY_TYPES.includes(type)) {
    const near = nearest(type, REPLAY_TYPES);
    throw new UsageError(`--type ${type}: expected ${REPLAY_TYPES.join(", ")}${near === undefined ? "" : `; do you mean ${near}?`}`);
  }
  const wished = device === undefined ? {} : addressAndPort(device);
  if (wished === undefined) throw new UsageError(`--device ${device}: expected an address, or address:port, such as 10.0.0.5:502`);
  return { ...wished, ...(type !== undefined && { type }) };
}

/** `10.0.0.5`, `10.0.0.5:502`, `[fd00::5]:502`, `fd00::5`; undefined: something else. */
function addressAndPort(text: string): { readonly address: string; readonly port?: number } | undefined {
  if (net.isIP(text) !== 0) return { address: text };
  const [, bracketed, plain, digits = ""] = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d{1,5}))?$/.exec(text) ?? [];
  const address = bracketed ?? plain ?? "";
  const port = Number(digits);
  if (net.isIP(address) === 0 || port > 65_535 || (digits !== "" && port === 0)) return undefined;
  return { address, ...(digits !== "" && { port }) };
}

function policyFor(config: string | undefined): Policy {
  try {
    return loadPolicy(policyFile(config)).policy;
  } catch (error) {
    if (error instanceof SettingsError) throw new UsageError(error.message);
    throw error;
  }
}

async function recordingOf(io: CommandIo, capture: string, wish: Wish): Promise<{ recording: Recording; facts: CaptureFacts }> {
  const recording = new Recording(wish);
  let toldAt = performance.now();
  const tell = (done: number, total: number | undefined): void => {
    if (performance.now() - toldAt < TOLD_EVERY_MS) return;
    toldAt = performance.now();
    complain(io, `read ${mib(done)}${total === undefined ? "" : ` of ${mib(total)}`} MiB`);
  };
  try {
    const source = capture === "-" ? io.stdin : capture;
    const facts = await readCapture(source, (pieces) => recording.add(pieces), { signal: io.signal, onProgress: tell });
    recording.end();
    return { recording, facts };
  } catch (error) {
    if (io.signal.aborted) throw new StoppedError();
    if (error instanceof CaptureError) throw new UsageError(error.message);
    throw error;
  }
}

const mib = (bytes: number): string => (bytes / 2 ** 20).toFixed(0);

/** The one device that is meant and can be served. */
function chosen(devices: readonly RecordedDevice[], name: string, { device, type }: ReplayVerbOptions): RecordedDevice {
  const answering = devices.filter(({ counts }) => counts.answers > 0);
  const can = answering.filter(({ protocol }) => protocol.refusal === undefined);
  const [one, ...others] = can;
  if (one && others.length === 0) return one;
  if (one)
    throw new UsageError(
      `${name} has several devices; name one with --device:\n${can.map((found) => `  --device ${deviceWords(found)}`).join("\n")}`,
    );
  const refused = devices.find(({ protocol }) => protocol.refusal !== undefined);
  if (refused)
    throw new UsageError(
      `${name}: ${endText(refused.end)} speaks ${refused.protocol.words}, which cannot be replayed: ${refused.protocol.refusal}`,
    );
  const [asked] = devices;
  const what = device === undefined ? "" : ` of ${device}`;
  throw new UsageError(
    asked
      ? `${name} has requests and no answer${what}${type === undefined ? `; --type says what it speaks (taken for ${asked.protocol.words})` : ` that ${asked.protocol.words} would have`}`
      : `${name} has no conversation${device === undefined ? " over TCP or UDP" : ` with ${device}`}`,
  );
}

const deviceWords = ({ end, protocol, counts }: RecordedDevice): string =>
  `${endText(end)}  ${protocol.words}: ${counts.requests} requests, ${counts.answers} answers, ${counts.connections} connections`;

function placeOf(listen: string | undefined, { end }: RecordedDevice): { readonly host: string; readonly port: number } {
  const ownPort = end.port < FIRST_FREE_PORT ? end.port + MOVED_BY : end.port;
  if (listen === undefined) return { host: LOOPBACK, port: ownPort };
  if (/^\d{1,5}$/.test(listen) && Number(listen) <= 65_535) return { host: LOOPBACK, port: Number(listen) };
  const place = addressAndPort(listen.replace(/^localhost(?=:|$)/, LOOPBACK).replace(/:0$/, ""));
  if (!place) throw new UsageError(`--listen ${listen}: expected an address of this machine and a port, such as ${LOOPBACK}:1502`);
  return { host: place.address, port: place.port ?? (/:0$/.test(listen) ? 0 : ownPort) };
}

async function started(device: RecordedDevice, host: string, port: number, report: Report): Promise<ReplayDevice> {
  try {
    return await ReplayDevice.start({ device, host, port, onUnknown: (unknown) => report.unknown(unknown) });
  } catch (error) {
    const where = endText({ address: host, port });
    const code = errorCode(error);
    const words: Readonly<Record<string, string>> = {
      EADDRINUSE: `${where} is taken by another program; choose another port`,
      EACCES: `${where}: this user may not listen below port ${FIRST_FREE_PORT}; choose a port above, such as ${port + MOVED_BY}`,
      EADDRNOTAVAIL: `${host} is not an address of this machine`,
    };
    throw new UsageError(`--listen: ${words[code] ?? `cannot listen on ${where} (${code})`}`);
  }
}

const stopped = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });

/** What is printed while it serves: for people, or JSON lines. */
class Report {
  readonly #io: CommandIo;
  readonly #isJson: boolean;
  readonly #shown = new Set<string>();

  constructor(io: CommandIo, isJson: boolean) {
    this.#io = io;
    this.#isJson = isJson;
  }

  listening(
    name: string,
    facts: CaptureFacts,
    { room }: Recording,
    { end, transport, protocol, script, counts }: RecordedDevice,
    place: { readonly address: string; readonly port: number },
    policy: Policy,
  ): void {
    if (this.#isJson) {
      const { unread, lostBytes, isCut } = facts;
      this.#json({
        listening: { ...place, transport },
        device: { address: end.address, port: end.port, type: protocol.type },
        recorded: { requests: counts.requests, different_requests: script.size, answers: counts.answers, not_kept: room.notKept },
        capture: {
          packets: facts.packets,
          unread,
          lost_bytes: lostBytes,
          is_cut: isCut,
          unpaired: counts.unpaired,
          stray_bytes: counts.strayBytes,
        },
      });
      return;
    }
    if (room.notKept > 0)
      complain(
        this.#io,
        `${name}: ${room.notKept} answers are not kept, for which there is no room; name the device, or filter the capture`,
      );
    if (counts.unpaired > 0) complain(this.#io, `${name}: ${counts.unpaired} messages of the device answer no request of the capture`);
    if (counts.strayBytes > 0) complain(this.#io, `${name}: ${counts.strayBytes} bytes are no whole message of ${protocol.words}`);
    const closed = place.address === LOOPBACK ? permitOf(policy, "sources")(place.address, place.port) : undefined;
    writeLines(this.#io, [
      `${endText(end)}, ${protocol.words}: ${script.size} different requests, ${counts.answers} answers`,
      `listening on ${endText(place)} (${transport.toUpperCase()}); Ctrl-C ends it`,
      ...(closed === undefined ? [] : [`for a data source of the service: ${closed}`]),
    ]);
  }

  unknown({ request, essence, nearest }: Unknown): void {
    const key = essence.toString("latin1");
    if (this.#shown.has(key) || this.#shown.size >= MAX_SHOWN) return;
    this.#shown.add(key);
    if (this.#isJson) this.#json({ unknown: { request: shortHex(request), nearest: nearest === undefined ? null : shortHex(nearest) } });
    else
      writeLines(this.#io, [
        `not in the capture: ${shortHex(request)}`,
        nearest === undefined
          ? "  the capture has no request"
          : `  the nearest there is ${shortHex(nearest)} (${differenceWords(request, nearest)})`,
        ...(this.#shown.size === MAX_SHOWN ? [`further ones are counted and not shown`] : []),
      ]);
  }

  summary({ connections, refused, requests, answered, byPlace, silent, unknown, ended }: Asks): void {
    if (this.#isJson) {
      this.#json({ summary: { connections, refused, requests, answered, answered_by_place: byPlace, silent, unknown, ended } });
      return;
    }
    const extra = [
      ...(byPlace > 0 ? [`${byPlace} of the answers were given by their place in the capture alone`] : []),
      ...(refused > 0 ? [`${refused} connections were too many at once`] : []),
      ...(ended > 0 ? [`${ended} connections were ended: no message of the protocol came, or nobody took the answers`] : []),
    ];
    writeLines(this.#io, [
      `${connections} connections, ${requests} requests: ${answered} answered, ${silent} silent as in the capture, ${unknown} not in the capture`,
      ...extra,
    ]);
  }

  #json(value: object): void {
    this.#io.stdout.write(`${toJson(value)}\n`);
  }
}

const shortHex = (bytes: Buffer): string => `${bytes.toString("hex", 0, SHOWN_BYTES)}${bytes.length > SHOWN_BYTES ? "…" : ""}`;

/** `12 bytes longer`, or where bytes differ. */
function differenceWords(request: Buffer, nearest: Buffer): string {
  if (request.length !== nearest.length) return `${nearest.length} bytes, and this has ${request.length}`;
  const at = [...request.keys()].filter((i) => request[i] !== nearest[i]);
  return `other at ${at.slice(0, 8).join(", ")}${at.length > 8 ? ", …" : ""}`;
}
