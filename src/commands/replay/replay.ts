import { toJson } from "../../base/json.ts";
import { nearest } from "../../base/nearest.ts";
import { countOf } from "../../base/number.ts";
import { endText } from "../../model/address.ts";
import type { Policy } from "../../model/policy.ts";
import type {
  MemoryFacts,
  RecordingRead,
  RecordingWish,
  ReplayableDevice,
  ReplayCounts,
  RunningReplay,
  UnknownRequest,
  Workbench,
} from "../../model/workbench.ts";
import { loadWorkbench } from "../add-on.ts";
import { type CommandIo, complain, EXIT, type ExitCode, StoppedError, UsageError } from "../io.ts";
import { writeLines } from "../lines.ts";
import { addressAndPort, freePortFor, listenFailure, type Place, placeOf, policyFor, readingNotes, stopped } from "../listening.ts";

/** The command line's options, as typed. */
export interface ReplayVerbOptions {
  readonly config?: string;
  readonly json?: boolean;
  readonly listen?: string;
  readonly device?: string;
  readonly type?: string;
}

/** Of a person who waits for a long file. */
const TOLD_EVERY_MS = 2000;
/** Different unknown requests that are printed; further ones are counted. */
const MAX_SHOWN = 100;
const SHOWN_BYTES = 64;

/** `collector replay CAPTURE`: serves the answers of a recorded device until the person stops it. Throws UsageError. */
export async function replay(io: CommandIo, capture: string, options: ReplayVerbOptions): Promise<ExitCode> {
  const workbench = await loadWorkbench(io);
  const wish = wishOf(options, workbench.replayTypes);
  const policy = policyFor(options.config);
  const recording = await recordingOf(io, workbench, capture, wish);
  const name = capture === "-" ? "the capture" : capture;
  for (const line of recording.notes) complain(io, `${name}: ${line}`);
  const device = chosen(recording.devices, name, options);
  const place = placeOf(options.listen, freePortFor(device.end.port), policy);
  const report = new Report(io, options.json === true);
  const running = await started(device, place, report);
  report.listening(name, recording, device, { ...place, port: running.port }, policy);
  report.memory(name, running.memory);
  try {
    await stopped(io.signal);
  } finally {
    await running.close();
  }
  report.summary(running.counts);
  return EXIT.good;
}

function wishOf({ device, type }: ReplayVerbOptions, types: readonly string[]): RecordingWish {
  if (type !== undefined && !types.includes(type)) {
    const near = nearest(type, types);
    throw new UsageError(`--type ${type}: expected ${types.join(", ")}${near === undefined ? "" : `; do you mean ${near}?`}`);
  }
  const [, place, over] = /^(.*?)(?:\/(tcp|udp))?$/i.exec(device ?? "") ?? [];
  const transport = over?.toLowerCase() === "udp" ? "udp" : "tcp";
  const wished = device === undefined ? {} : addressAndPort(place ?? "");
  if (wished === undefined)
    throw new UsageError(`--device ${device}: expected an address, address:port or address:port/udp, such as 10.0.0.5:502`);
  return { ...wished, ...(over !== undefined && { transport }), ...(type !== undefined && { type }) };
}

async function recordingOf(io: CommandIo, { readRecording }: Workbench, capture: string, wish: RecordingWish): Promise<RecordingRead> {
  let toldAt = performance.now();
  const tell = (done: number, total: number | undefined): void => {
    if (performance.now() - toldAt < TOLD_EVERY_MS) return;
    toldAt = performance.now();
    complain(io, `read ${mib(done)}${total === undefined ? "" : ` of ${mib(total)}`} MiB`);
  };
  try {
    const source = capture === "-" ? io.stdin : capture;
    const recording = await readRecording(source, wish, { signal: io.signal, onProgress: tell });
    if ("problem" in recording) throw new UsageError(recording.problem);
    return recording;
  } catch (error) {
    if (io.signal.aborted) throw new StoppedError();
    throw error;
  }
}

const mib = (bytes: number): string => (bytes / 2 ** 20).toFixed(0);

/** The one device that is meant and can be served. */
function chosen(devices: readonly ReplayableDevice[], name: string, { device, type }: ReplayVerbOptions): ReplayableDevice {
  const answering = devices.filter(({ counts }) => counts.answers > 0);
  const can = answering.filter(({ refusal }) => refusal === undefined);
  const [one, ...others] = can;
  if (one && others.length === 0) return one;
  if (one)
    throw new UsageError(
      `${name} has several devices; name one with --device:\n${can.map((found) => `  --device ${deviceWords(found, can)}`).join("\n")}`,
    );
  const refused = devices.find(({ refusal }) => refusal !== undefined);
  if (refused)
    throw new UsageError(`${name}: ${endText(refused.end)} speaks ${refused.protocol}, which cannot be replayed: ${refused.refusal}`);
  const [asked] = devices;
  const what = device === undefined ? "" : ` of ${device}`;
  throw new UsageError(
    asked
      ? `${name} has requests and no answer${what}${type === undefined ? `; --type says what it speaks (taken for ${asked.protocol})` : ` that ${asked.protocol} would have`}`
      : `${name} has no conversation${device === undefined ? " over TCP or UDP" : ` with ${device}`}`,
  );
}

/** The transport is named where the same address and port have both. */
function deviceWords({ end, transport, protocol, counts }: ReplayableDevice, all: readonly ReplayableDevice[]): string {
  const isAmbiguous = all.some((one) => one.transport !== transport && endText(one.end) === endText(end));
  return `${endText(end)}${isAmbiguous ? `/${transport}` : ""}  ${protocol}: ${countOf(counts.requests, "request")}, ${countOf(counts.answers, "answer")}, ${countOf(counts.connections, "connection")}`;
}

async function started(device: ReplayableDevice, place: Place, report: Report): Promise<RunningReplay> {
  try {
    return await device.serve({ ...place, onUnknown: (unknown) => report.unknown(unknown) });
  } catch (error) {
    throw listenFailure(error, place);
  }
}

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
    { facts, notKept }: RecordingRead,
    { end, transport, type, protocol, counts, differentRequests }: ReplayableDevice,
    place: Place,
    policy: Policy,
  ): void {
    if (this.#isJson) {
      const { unread, lostBytes, isCut } = facts;
      this.#json({
        listening: { address: place.host, port: place.port, transport },
        device: { address: end.address, port: end.port, type },
        recorded: { requests: counts.requests, different_requests: differentRequests, answers: counts.answers, not_kept: notKept },
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
    if (notKept > 0)
      complain(this.#io, `${name}: ${notKept} answers are not kept, for which there is no room; name the device, or filter the capture`);
    if (counts.unpaired > 0) complain(this.#io, `${name}: ${counts.unpaired} messages of the device answer no request of the capture`);
    if (counts.strayBytes > 0) complain(this.#io, `${name}: ${counts.strayBytes} bytes are not a whole message of ${protocol}`);
    writeLines(this.#io, [
      `${endText(end)}, ${protocol}: ${countOf(differentRequests, "different request")}, ${countOf(counts.answers, "answer")}`,
      `listening on ${endText({ address: place.host, port: place.port })} (${transport.toUpperCase()}); Ctrl-C ends it`,
      ...readingNotes(policy, place),
    ]);
  }

  memory(name: string, memory: MemoryFacts | undefined): void {
    if (memory === undefined) return;
    const { ranges, leftOut } = memory;
    if (this.#isJson) this.#json({ memory: { ranges, left_out: leftOut } });
    else if (leftOut > 0)
      complain(this.#io, `${name}: ${leftOut} ranges of answers have no room in the memory; name the device, or filter the capture`);
    if (!this.#isJson && ranges > 0)
      writeLines(this.#io, [
        `memory: ${countOf(ranges, "range")} that the capture reads; any part of ${ranges === 1 ? "it" : "them"} is served`,
      ]);
  }

  unknown({ request, essence, nearest }: UnknownRequest): void {
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

  summary({ connections, refused, requests, answered, byPlace, fromMemory, silent, unknown, ended }: ReplayCounts): void {
    if (this.#isJson) {
      this.#json({
        summary: {
          connections,
          refused,
          requests,
          answered,
          answered_by_place: byPlace,
          answered_from_memory: fromMemory,
          silent,
          unknown,
          ended,
        },
      });
      return;
    }
    const extra = [
      ...(fromMemory > 0 ? [`${fromMemory} requests are not in the capture: their answers are made of what it reads`] : []),
      ...(byPlace > 0 ? [`${byPlace} requests were matched by order only`] : []),
      ...(refused > 0 ? [`${refused} connections were too many at once`] : []),
      ...(ended > 0 ? [`${ended} connections were ended: no message of the protocol came, or the answers were not read`] : []),
    ];
    writeLines(this.#io, [
      `${countOf(connections, "connection")}, ${countOf(requests, "request")}: ${answered} answered, ${silent} silent as in the capture, ${unknown} not in the capture`,
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
