import type { Fence } from "../../../drivers/lib/exchange.ts";
import type { DetailsType } from "../../model/details.ts";
import {
  controllerDataRequest,
  HTTP_HEAD,
  IDENTIFICATION,
  LIST_IDENTITY,
  lookAtAny,
  lookEnip,
  lookFins,
  lookHttp,
  lookModbus,
  lookOpcua,
  NODE_REQUEST,
  OPCUA_HELLO,
} from "./answers.ts";
import { CONNECT_PLUS, CONNECT_SLOT_1, CONNECT_SLOT_2, INIT_SSL, lookS7, lookS7Plus, READ_SZL, SETUP } from "./iso-answers.ts";
import type { Look, Recognised } from "./recognised.ts";

/** First requests by which the program behind a port is recognised. They only read, and only a person sends them. */
export interface Hello {
  readonly name: string;
  /** The type of data source whose protocol it is. */
  readonly type?: DetailsType;
  /** Port at which its protocol is usual. */
  readonly port?: number;
  /** Each request, and where it is specified; of one with places that the device fills, an example. */
  readonly requests: readonly (readonly [words: string, bytes: Buffer])[];
  /** Looks at all bytes of a connection so far. Pure; never throws. */
  readonly look: (bytes: Buffer) => Look;
}

/** Bytes of one connection that are looked at. */
export const MAX_HEARD_BYTES = 8192;

const EXAMPLE_NODES = { client: 239, server: 10 };
const ISO_CONNECT = "ISO connect request (RFC 1006, X.224)";
const S7_REQUESTS = [
  ["S7 set-up", SETUP],
  ["S7 read of the list 0x0011, module identification", READ_SZL],
] as const;

/** In the order in which they are tried at a port that is usual for none: those first that tell most. */
export const HELLOS: readonly Hello[] = [
  { name: "EtherNet/IP", type: "vendor_a", port: 44_818, requests: [["ListIdentity (CIP Vol. 2, 2-4.2)", LIST_IDENTITY]], look: lookEnip },
  {
    name: "Modbus TCP",
    type: "modbus_tcp",
    port: 502,
    requests: [["Read Device Identification of unit 255 (MODBUS Application Protocol V1.1b3, 6.21)", IDENTIFICATION]],
    look: lookModbus,
  },
  { name: "OPC UA", type: "opcua", port: 4840, requests: [["Hello (OPC 10000-6, 7.1.2.3)", OPCUA_HELLO]], look: lookOpcua },
  {
    name: "FINS/TCP",
    type: "fins",
    port: 9600,
    requests: [
      ["node request (Omron W421)", NODE_REQUEST],
      ["Controller Data Read (Omron W227), with the nodes that the device gave", controllerDataRequest(EXAMPLE_NODES)],
    ],
    look: lookFins,
  },
  {
    name: "S7, slot 2",
    type: "s7",
    port: 102,
    requests: [[ISO_CONNECT, CONNECT_SLOT_2], ...S7_REQUESTS],
    look: lookS7(CONNECT_SLOT_2, 2),
  },
  {
    name: "S7, slot 1",
    type: "s7",
    port: 102,
    requests: [[ISO_CONNECT, CONNECT_SLOT_1], ...S7_REQUESTS],
    look: lookS7(CONNECT_SLOT_1, 1),
  },
  {
    name: "S7comm-plus",
    type: "s7plus",
    port: 102,
    requests: [
      [ISO_CONNECT, CONNECT_PLUS],
      ["InitSSL", INIT_SSL],
    ],
    look: lookS7Plus,
  },
  { name: "HTTP", requests: [["HEAD / (RFC 9110, 9.3.2)", HTTP_HEAD]], look: lookHttp },
];

const CONSTANT: ReadonlySet<string> = new Set(HELLOS.flatMap(({ requests }) => requests).map(([, bytes]) => bytes.toString("hex")));
const CONTROLLER_DATA = controllerDataRequest(EXAMPLE_NODES);
/** Places of the nodes: DA1 and SA1, behind 16 bytes of FINS/TCP. */
const [SERVER_AT, CLIENT_AT] = [16 + 4, 16 + 7];
const isNode = (node: number | undefined): boolean => node !== undefined && node >= 1 && node <= 254;

/** Only the requests of the table pass, byte for byte; of the Controller Data Read, with any nodes. */
export const fence: Fence = (frame) => {
  const bytes = Buffer.from(frame.buffer, frame.byteOffset, frame.byteLength);
  if (CONSTANT.has(bytes.toString("hex"))) return true;
  const isForNodes = bytes.length === CONTROLLER_DATA.length && isNode(bytes[SERVER_AT]) && isNode(bytes[CLIENT_AT]);
  if (isForNodes && controllerDataRequest({ client: bytes[CLIENT_AT] ?? 0, server: bytes[SERVER_AT] ?? 0 }).equals(bytes)) return true;
  return `${bytes.length} bytes that are not a hello`;
};

/** Protocols of text, whose first lines come in parts and name the program. */
const LINES: ReadonlySet<string> = new Set(["SSH", "HTTP"]);
/** Bytes that tell any of the programs that are known. */
const MIN_FOREIGN_BYTES = 16;

/** Looks at all bytes that came over a connection with this hello: in its protocol, else as any program may answer. Pure; never throws. */
export function lookAt({ look }: Pick<Hello, "look">, heard: Uint8Array): Look {
  const bytes = Buffer.from(heard.buffer, heard.byteOffset, Math.min(heard.byteLength, MAX_HEARD_BYTES));
  const own = look(bytes);
  if (own.found) return own;
  const found = lookAtAny(bytes);
  const isDone = found?.model !== undefined || !LINES.has(found?.protocol ?? "");
  // Its own hello makes it tell more.
  if (found) return { ...own, found, isDone, ...(found.type !== undefined && { isVague: true }) };
  return own.isDone && bytes.length < MIN_FOREIGN_BYTES ? { ...own, isDone: false } : own;
}

/** The program that sent these bytes in answer to this hello; undefined: nothing that is known. Pure; never throws. */
export const recognise = (hello: Pick<Hello, "look">, heard: Uint8Array): Recognised | undefined => lookAt(hello, heard).found;
