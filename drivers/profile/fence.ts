import type { ArgumentOf } from "../../src/model/profile.ts";
import { isAllowed } from "../../src/model/profile-check.ts";
import { type PlaceholderFormat, renderValue, type TemplatePart } from "../../src/model/profile-template.ts";
import type { Fence } from "../lib/exchange.ts";
import type { Compiled, CompiledRequest } from "./compiled.ts";
import { nextFrame, payloadOf } from "./framing.ts";

/** A request of the profile that a frame is, with its arguments as they are written. */
export interface RequestMatch {
  readonly request: CompiledRequest;
  readonly args: readonly string[];
}

/**
 * Which request a frame is, taken apart again; a text says why it is none. Pure. What follows an answer (`finish`) is one without arguments.
 */
export function requestIn(compiled: Compiled, frame: Buffer): RequestMatch | string {
  const requests = [...compiled.requests.values()];
  const finished = requests.find(({ finish }) => finish && argumentsIn(compiled, finish, [], frame));
  if (finished) return { request: finished, args: [] };
  const { framing } = compiled;
  const found = framing.isForRequests ? nextFrame(framing, frame, 0) : undefined;
  const isWhole = typeof found === "object" && found.kind === "frame" && found.length === frame.length;
  const payload = framing.isForRequests ? (isWhole ? payloadOf(framing, frame) : "no whole frame") : frame;
  if (typeof payload === "string") return payload;
  for (const request of requests) {
    const args = request.send && argumentsIn(compiled, request.send, request.arguments, payload);
    if (args) return { request, args };
  }
  return `${payload.toString("hex").slice(0, 60)} is not a request of the profile ${compiled.profile.name}`;
}

/**
 * What only lets requests of the profile pass: each frame is taken apart again, and has to be one of the templates with the parameters of the
 * source, and arguments within what the profile says of them. What a template does to a device is for the author of the profile to know.
 */
export function fenceOf(compiled: Compiled): Fence {
  return (bytes) => {
    const match = requestIn(compiled, Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
    return typeof match === "string" ? match : true;
  };
}

/** The arguments with which bytes are a template to the last byte, in the order of the request; undefined: they are another thing. */
function argumentsIn(
  { parameters }: Pick<Compiled, "parameters">,
  template: NonNullable<CompiledRequest["send"]>,
  args: CompiledRequest["arguments"],
  bytes: Buffer,
): readonly string[] | undefined {
  const found = new Map<string, string>();
  let at = 0;
  for (const part of template) {
    const argument = "placeholder" in part ? args.find(([name]) => name === part.placeholder)?.[1] : undefined;
    const length =
      argument && "placeholder" in part
        ? argumentLength(part.format, argument, bytes.subarray(at))
        : fixedLength(part, parameters, bytes, at);
    if (length === undefined) return undefined;
    if (argument && "placeholder" in part) {
      const value = bytes.subarray(at, at + length);
      const text = argument.type === "text" ? value.toString("latin1") : String(numberAt(part.format, value)[1]);
      if ((found.get(part.placeholder) ?? text) !== text) return undefined;
      found.set(part.placeholder, text);
    }
    at += length;
  }
  return at === bytes.length ? args.map(([name]) => found.get(name) ?? "") : undefined;
}

/** Bytes of a part that has one value; undefined: it is not there. */
function fixedLength(part: TemplatePart, parameters: Compiled["parameters"], bytes: Buffer, at: number): number | undefined {
  const value = "placeholder" in part ? parameters.get(part.placeholder) : undefined;
  const expected = "bytes" in part ? part.bytes : value === undefined ? "" : renderValue(value, part.format);
  if (typeof expected === "string") return undefined;
  return expected.every((byte, i) => bytes[at + i] === byte) ? expected.length : undefined;
}

/** Bytes of an argument at the beginning of `bytes`; undefined: what is there is none. */
function argumentLength(format: PlaceholderFormat, argument: ArgumentOf, bytes: Buffer): number | undefined {
  if (argument.type === "text") {
    const text = bytes.toString("latin1");
    let length = 0;
    while (length < text.length && isAllowed(argument, text[length] ?? "")) length++;
    const taken = format.kind === "text" && format.width !== undefined ? format.width : length;
    return taken >= 1 && taken <= length && taken <= argument.max_length ? taken : undefined;
  }
  const [length, value] = numberAt(format, bytes);
  return length <= bytes.length && Number.isInteger(value) && value >= argument.min && value <= argument.max ? length : undefined;
}

function numberAt(format: PlaceholderFormat, bytes: Buffer): readonly [length: number, value: number] {
  if (format.kind === "binary") {
    const { bytes: size, isSigned, isBigEndian } = format;
    if (bytes.length < size) return [size, Number.NaN];
    if (isSigned) return [size, isBigEndian ? bytes.readIntBE(0, size) : bytes.readIntLE(0, size)];
    return [size, isBigEndian ? bytes.readUIntBE(0, size) : bytes.readUIntLE(0, size)];
  }
  if (format.kind === "text") return [0, Number.NaN];
  const digits = (format.kind === "decimal" ? /^\d*/ : /^[0-9a-fA-F]*/).exec(bytes.toString("latin1"))?.[0] ?? "";
  const taken = digits.slice(0, format.width ?? digits.length);
  if (taken === "" || (format.width !== undefined && taken.length !== format.width)) return [0, Number.NaN];
  return [taken.length, Number.parseInt(taken, format.kind === "decimal" ? 10 : 16)];
}
