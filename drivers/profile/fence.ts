import type { ArgumentOf } from "../../src/model/profile.ts";
import { isAllowed } from "../../src/model/profile-check.ts";
import { type PlaceholderFormat, renderValue, type TemplatePart } from "../../src/model/profile-template.ts";
import type { Fence } from "../lib/exchange.ts";
import type { Compiled, CompiledRequest } from "./compiled.ts";
import { nextFrame, payloadOf } from "./framing.ts";

/**
 * What only lets requests of the profile pass: each frame is taken apart again, and has to be one of the templates with the parameters of the
 * source, and arguments within what the profile says of them. What a template does to a device is for the author of the profile to know.
 */
export function fenceOf(compiled: Compiled): Fence {
  const requests = [...compiled.requests.values()];
  return (bytes) => {
    const frame = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const { framing } = compiled;
    if (requests.some(({ finish }) => finish && isOf(compiled, finish, [], frame))) return true;
    let payload: Buffer | string = frame;
    if (framing.isForRequests) {
      const found = nextFrame(framing, frame, 0);
      const isWhole = typeof found === "object" && found.kind === "frame" && found.length === frame.length;
      payload = isWhole ? payloadOf(framing, frame) : "no whole frame";
    }
    if (typeof payload === "string") return payload;
    const known = requests.some((request) => request.send && isOf(compiled, request.send, request.arguments, payload));
    return known || `${payload.toString("hex").slice(0, 60)} is no request of the profile ${compiled.profile.name}`;
  };
}

/** Whether bytes are a template to the last byte. */
function isOf(
  { parameters }: Pick<Compiled, "parameters">,
  template: NonNullable<CompiledRequest["send"]>,
  args: CompiledRequest["arguments"],
  bytes: Buffer,
): boolean {
  let at = 0;
  for (const part of template) {
    const argument = "placeholder" in part ? args.find(([name]) => name === part.placeholder)?.[1] : undefined;
    const length =
      argument && "placeholder" in part
        ? argumentLength(part.format, argument, bytes.subarray(at))
        : fixedLength(part, parameters, bytes, at);
    if (length === undefined) return false;
    at += length;
  }
  return at === bytes.length;
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
