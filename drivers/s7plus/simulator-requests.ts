import type { FunctionName } from "./simulator-messages.ts";
import type { PlcRequest } from "./simulator-plc.ts";
import { hex, type Reader, WireError, Writer } from "./simulator-wire.ts";

/** Behind most requests. */
export const QUALIFIER = hex("000004e88969001200000000896a001300896b00040000");

/** What stands in the parts of a request that is understood. */
export interface Parsed {
  readonly items?: PlcRequest["items"];
  readonly object: number | undefined;
  readonly attributes?: readonly number[];
  readonly filter?: number | undefined;
  readonly value?: Buffer;
}

type Parse = (reader: Reader, sessionId: number) => Parsed;
const ownSession = (reader: Reader, id: number): void => {
  if (reader.u32() !== id) throw new WireError("a request about another object than the session");
};
const never: Parse = () => {
  throw new WireError("a request that a session does not take twice");
};

/** Takes the part of a request that is its function's own; throws a WireError for what cannot be understood. */
export const PARSERS: Readonly<Record<FunctionName, Parse>> = {
  initSsl: never,
  createObject: never,
  setMultiVariables: (reader) => {
    // A write, whatever of: its counter cannot be found behind it, so that nothing more is said of it.
    const object = reader.u32();
    throw new WireError(`setMultiVariables of ${object.toString(16)} in an open session`);
  },
  getMultiVariables(reader) {
    if (reader.u32() !== 0) throw new WireError("the link id is not 0");
    const count = reader.vlq();
    const fields = reader.vlq();
    const items = Array.from({ length: count }, () => {
      const [crc, area] = [reader.vlq(), reader.vlq()];
      const ids = Array.from({ length: reader.vlq() }, () => reader.vlq());
      return { crc, area, subArea: ids[0] ?? 0, lids: ids.slice(1) };
    });
    if (items.reduce((sum, { lids }) => sum + 4 + lids.length, 0) !== fields) throw new WireError("the count of fields is wrong");
    reader.expect(QUALIFIER, "the object qualifier");
    return { items, object: undefined };
  },
  explore(reader) {
    const object = reader.u32();
    if (reader.vlq() !== 0) throw new WireError("an explore request id that is not 0");
    reader.take(3);
    const filter = reader.u8() === 1 ? classIn(reader.value()) : undefined;
    if (filter !== undefined) reader.expect(Buffer.from([0]), "the number of filters");
    return { object, filter, attributes: Array.from({ length: reader.vlq() }, () => reader.vlq()) };
  },
  getVarSubStreamed(reader, id) {
    ownSession(reader, id);
    reader.expect(Buffer.from([0x20, 4, 1]), "the array of attributes");
    const object = reader.vlq();
    reader.expect(QUALIFIER, "the object qualifier");
    reader.expect(Buffer.from([0, 1]), "what follows the qualifier");
    return { object };
  },
  setVariable(reader, id) {
    ownSession(reader, id);
    if (reader.u8() !== 1) throw new WireError("several attributes are set");
    const object = reader.vlq();
    const value = reader.value();
    reader.expect(QUALIFIER, "the object qualifier");
    reader.expect(Buffer.from([0]), "what follows the qualifier");
    return { object, value };
  },
  deleteObject(reader, id) {
    ownSession(reader, id);
    reader.expect(Buffer.from([0]), "what follows the object");
    reader.expect(QUALIFIER, "the object qualifier");
    return { object: id };
  },
};

const CLASS_FILTER = 1251;

/** The class that a filter's structure names. */
function classIn(filter: Buffer): number {
  const at = filter.indexOf(new Writer().vlq(CLASS_FILTER).hex("0012").done());
  if (at < 0) throw new WireError("a filter without a class");
  return filter.readUInt32BE(at + 4);
}
