import { FaultError } from "../../../src/model/fault.ts";
import type { DriverContext, Point } from "../../driver.ts";
import { quote } from "../../lib/text.ts";
import { type CipAddress, textOf } from "../address.ts";
import { readRequest, STATUS, tagPath } from "../cip.ts";
import { pathOf } from "../locate.ts";
import type { Messenger } from "../messenger.ts";
import { type Base, MAX_INDEX } from "./locate.ts";
import { parseValueHead } from "./objects.ts";
import { variableRefusal } from "./refusals.ts";
import { BITS_OF_WORD, BOOL, ELEMENTARY, isStructureCode, type Shape, STRING } from "./types.ts";

/** The answer of a variable that no list describes. */
interface Answered {
  readonly code: number;
  /** Behind the type. */
  readonly data: Buffer;
}

/** Reads it as its address says. A FaultError: the controller's refusal. Throws as `Messenger.ask`. */
export function askAlone({ address }: Point<CipAddress>, messenger: Messenger, ctx: DriverContext): Promise<Answered | FaultError> {
  const text = textOf({ ...address, bit: undefined });
  return messenger.ask<Answered | FaultError>(
    ctx,
    () => text,
    readRequest(tagPath(pathOf(address)), 1),
    ({ status, extended, bytes, at, end }, done) => {
      const head = status === STATUS.ok ? parseValueHead(bytes, at, end) : refusalOf(status, extended, text);
      if (head instanceof FaultError) done(head);
      else if (typeof head === "string") done(new FaultError("device_error", `${text}: ${head}`));
      else done({ code: head.code, data: Buffer.from(bytes.subarray(head.dataAt, end)) });
      return undefined;
    },
  );
}

/** A length, so many bytes, and nothing but NULs behind them: an array of texts has no lengths (W506, 8-7). */
const isOneText = (data: Buffer): boolean =>
  data.length >= 2 && data.readUInt16LE(0) <= data.length - 2 && data.subarray(2 + data.readUInt16LE(0)).every((byte) => byte === 0);

/** The state of one BOOL, and whether it is forced. */
const isOneBool = (data: Buffer): boolean => data.length <= 2 && data.every((byte) => byte <= 1);

function refusalOf(status: number, extended: number | undefined, text: string): FaultError {
  if (status !== STATUS.tooLarge) return variableRefusal(status, extended, text);
  return new FaultError(
    "out_of_range",
    `${text}: an answer has no room for it, and the controller does not list its bounds: name a part, for example ${text}[0]{100}`,
  );
}

/** The base to locate such a variable from; a FaultError tells what its address has to say too. `why` there is no list. Pure. */
export function baseAlone({ address, type }: Point<CipAddress>, { code, data }: Answered, why: string | undefined): Base | FaultError {
  const text = textOf(address);
  const refuse = (words: string): FaultError => new FaultError("type_mismatch", `${quote(text)}: ${words}`);
  if (isStructureCode(code))
    return refuse(`it is a structure whose members the controller does not list: name one of them${why === undefined ? "" : ` (${why})`}`);
  const bytes = ELEMENTARY.get(code)?.bytes ?? 0;
  const got = data.length;
  const single: Shape = { code, bytes, dimensions: [], firsts: [] };
  const count = address.count ?? type.count;
  const last = address.steps.at(-1);
  const found = (shape: Shape): Base => ({ path: pathOf(address), name: textOf({ ...address, bit: undefined }), shape, steps: [] });
  if (typeof last === "object") {
    if (last.length > 1) return count === undefined ? found(single) : refuse("the controller does not list its bounds: name one element");
    const array = { ...address, steps: address.steps.slice(0, -1), bit: undefined };
    return { path: pathOf(array), name: textOf(array), shape: { ...single, dimensions: [MAX_INDEX + 1], firsts: [0] }, steps: [last] };
  }
  if (code === STRING && !isOneText(data)) return refuse(`it is an array of texts: name one element, for example ${text}[0]`);
  const whole = (elements: number): Base => found({ ...single, dimensions: [elements], firsts: [0] });
  if (code === BOOL) {
    if (count === undefined)
      return isOneBool(data)
        ? found(single)
        : refuse(`it is an array of BOOL whose bounds the controller does not list: say how many, for example ${text}{16}`);
    return Math.ceil(count / BITS_OF_WORD) * 2 === got
      ? whole(count)
      : refuse(`it is not an array of ${count} BOOL: its answer has ${got * 8} bits`);
  }
  // An odd number of bytes may have a pad byte behind it.
  const areBytes = (asked: number): boolean => got === asked || got === asked + (asked & 1);
  const isSingle = got === bytes || (areBytes(bytes) && data.at(-1) === 0);
  const elements = code === STRING || bytes === 0 || isSingle ? 1 : Math.floor(got / bytes);
  if (count !== undefined)
    return code !== STRING && areBytes(count * bytes)
      ? whole(count)
      : refuse(`its bounds are not listed, and its answer has ${elements} elements`);
  if (elements > 1 && bytes === 1 && got % 2 === 0)
    return refuse(`it is an array whose bounds the controller does not list: say how many, for example ${text}{${got}}`);
  return elements > 1 ? whole(elements) : found(single);
}
