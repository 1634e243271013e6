import { checksum } from "../../drivers/modbus_tcp/simulator.ts";
import { wrongFins } from "./support/fins-frames.ts";

/** A request without unit, header and CRC. */
function modbusPdu(pdu: Buffer, at: number): string[] {
  const code = pdu.readUInt8(0);
  if (code === 20) return pdu.length === 9 && pdu[1] === 7 && pdu[2] === 6 ? [] : [`records in another form at ${at}`];
  if (code === 43) return pdu.length === 4 && pdu[1] === 14 && pdu[2] === 1 ? [] : [`function 43 in another form at ${at}`];
  if (![1, 2, 3, 4].includes(code) || pdu.length !== 5) return [`function ${code} with ${pdu.length} bytes at ${at}`];
  const count = pdu.readUInt16BE(3);
  return count >= 1 && count <= (code <= 2 ? 2000 : 125) ? [] : [`count ${count} of function ${code} at ${at}`];
}

function modbusFrames(sent: Buffer): string[] {
  const wrong: string[] = [];
  for (let at = 0; at < sent.length; ) {
    if (sent.length - at < 8) return [...wrong, `${sent.length - at} bytes at ${at} are not a whole request`];
    const [protocol, length] = [sent.readUInt16BE(at + 2), sent.readUInt16BE(at + 4)];
    if (protocol !== 0 || length < 2 || at + 6 + length > sent.length)
      return [...wrong, `protocol ${protocol} and length ${length} at ${at}`];
    wrong.push(...modbusPdu(sent.subarray(at + 7, at + 6 + length), at));
    at += 6 + length;
  }
  return wrong;
}

/** Unit, PDU, and a CRC (MODBUS over Serial Line V1.02, 6.2.2). */
function modbusSerial(sent: Buffer): string[] {
  const wrong: string[] = [];
  for (let at = 0; at < sent.length; ) {
    const code = sent[at + 1] ?? 0;
    const end = at + (code === 20 ? 12 : code === 43 ? 7 : 8);
    if (end > sent.length || !sent.subarray(end - 2, end).equals(Buffer.from(checksum(sent.subarray(at, end - 2)))))
      return [...wrong, `function ${code} with a wrong CRC at ${at}`];
    wrong.push(...modbusPdu(sent.subarray(at + 1, end - 2), at));
    at = end;
  }
  return wrong;
}

/**
 * Which bytes a driver may send, decoded a second time and apart from the drivers' own fences: one entry per type in the
 * registry and of the tests. Takes all bytes of one connection; gives what is not a request that reads, in words.
 */
export const ALLOWED: Readonly<Record<string, (sent: Buffer) => string[]>> = {
  // MODBUS Application Protocol V1.1b3, 6.1 to 6.4, 6.14 and 6.21: what reads without a side effect; with a header, or as on a serial line.
  modbus_tcp(sent) {
    const wrong = modbusFrames(sent);
    return wrong.length > 0 && modbusSerial(sent).length === 0 ? [] : wrong;
  },
  // OPC 10000-6, 6.7 and 7.1, without security: the encoding of each request, from the NodeIds file of the specification. Nothing that
  // writes, calls, adds, deletes (but the session's own subscription) or changes history.
  opcua(sent) {
    const wrong: string[] = [];
    let goesOn = false;
    for (let at = 0; at < sent.length; ) {
      if (sent.length - at < 8) return [...wrong, `${sent.length - at} bytes at ${at} are not a whole chunk`];
      const [type, length] = [sent.toString("latin1", at, at + 3), sent.readUInt32LE(at + 4)];
      if (length < 8 || length > sent.length - at) return [...wrong, `a chunk of ${length} bytes at ${at}`];
      const chunk = sent.subarray(at, at + length);
      at += length;
      if (type === "HEL") continue;
      // Only a message's first chunk has the encoding; those of one message follow each other on a connection of one channel.
      const begins = !goesOn;
      goesOn = chunk[3] === 0x43;
      if (!begins) continue;
      // Behind the sizes of three strings: policy, certificate, thumbprint.
      let body = 24;
      if (type === "OPN") {
        body = 12;
        for (let field = 0; field < 3; field++) body += 4 + Math.max(0, chunk.readInt32LE(body));
        body += 8;
      }
      const service =
        chunk.readUInt8(body) === 1 && chunk.readUInt8(body + 1) === 0 ? OPCUA_READS[chunk.readUInt16LE(body + 2)] : undefined;
      if (service === undefined || (service === "OPN" || service === "CLO" ? service !== type : type !== "MSG"))
        wrong.push(`${type} with the encoding ${chunk.toString("hex", body, body + 4)} at ${at - length}`);
    }
    return wrong;
  },
  // TPKT (RFC 1006, 6) and COTP (X.224, 13.3 and 13.7): one connect request, then data. Joined, each message is an S7 job: set-up (F0) or
  // read var (04) of bytes, timers and counters in areas that have no side effect.
  s7(sent) {
    const wrong: string[] = [];
    let parts: Buffer[] = [];
    for (let at = 0; at < sent.length; ) {
      const length = sent.length - at < 7 ? 0 : sent.readUInt16BE(at + 2);
      if (length < 7 || sent[at] !== 3 || at + length > sent.length) return [...wrong, `no whole TPKT packet at ${at}`];
      const [header, type, mark] = [sent.readUInt8(at + 4), sent.readUInt8(at + 5), sent.readUInt8(at + 6)];
      if (at === 0 ? type !== 0xe0 || header !== length - 5 : type !== 0xf0 || header !== 2 || (mark & 0x7f) !== 0)
        wrong.push(`TPDU ${type.toString(16)} at ${at}`);
      else if (at > 0) parts.push(sent.subarray(at + 7, at + length));
      at += length;
      if (at === length || (mark & 0x80) === 0) continue;
      const message = Buffer.concat(parts);
      parts = [];
      wrong.push(...wrongS7Job(message).map((what) => `${what} before ${at}`));
    }
    return parts.length === 0 ? wrong : [...wrong, "half a message at the end"];
  },
  // EtherNet/IP (CIP Vol. 2, 2-3) with CIP messages that read, alone, in a multiple service packet or along a route (CIP Vol. 1, 3-5 and A-4).
  vendor_a(sent) {
    const wrong: string[] = [];
    for (let at = 0; at < sent.length; ) {
      const end = sent.length - at < 24 ? sent.length + 1 : at + 24 + sent.readUInt16LE(at + 2);
      if (end > sent.length) return [...wrong, `no whole EtherNet/IP message at ${at}`];
      wrong.push(...wrongEncapsulation(sent.subarray(at, end)).map((what) => `${what} at ${at}`));
      at = end;
    }
    return wrong;
  },
  fins: wrongFins,
  // docs/gateway-protocol.md: a JSON object a line, one of the six requests, and none of their fields is another's.
  vendor_gateway(sent) {
    const lines = sent.toString("utf8").split("\n");
    const rest = lines.pop();
    const wrong = lines.flatMap((line) => {
      const fields = JSON.parse(line) as Readonly<Record<string, unknown>>;
      const allowed = GATEWAY_READS[String(fields["request"])];
      const strange = Object.keys(fields).filter((name) => !allowed?.includes(name));
      return allowed && strange.length === 0 && Number.isSafeInteger(fields["id"]) ? [] : [`the line ${line.slice(0, 100)}`];
    });
    return rest === "" ? wrong : [...wrong, "half a line at the end"];
  },
  // In the clear: one COTP connect request, one request for TLS (72 01, function 05b3), then records of TLS in data TPDUs and nothing else.
  s7plus(sent) {
    const wrong: string[] = [];
    const payloads: Buffer[] = [];
    for (let at = 0; at < sent.length; ) {
      const length = sent.length - at < 7 ? 0 : sent.readUInt16BE(at + 2);
      if (length < 7 || sent[at] !== 3 || at + length > sent.length) return [...wrong, `no whole TPKT packet at ${at}`];
      const type = sent.readUInt8(at + 5);
      if (type !== (at === 0 ? 0xe0 : 0xf0)) wrong.push(`TPDU ${type.toString(16)} at ${at}`);
      if (at > 0) payloads.push(sent.subarray(at + 7, at + length));
      at += length;
    }
    const [initSsl, ...tls] = payloads;
    if (initSsl && initSsl.toString("hex").replace(/^(.{22})..../, "$1") !== "7201001231000005b30000" + "000000003000000000" + "72010000")
      wrong.push(`${initSsl.toString("hex")} in the clear`);
    const records = Buffer.concat(tls);
    for (let at = 0; at < records.length; ) {
      const type = records.readUInt8(at);
      if (type < 0x14 || type > 0x17 || records[at + 1] !== 3) return [...wrong, `no record of TLS at ${at}`];
      // The last one may be cut where the connection was.
      if (at + 5 > records.length) break;
      at += 5 + records.readUInt16BE(at + 3);
    }
    return wrong;
  },
  // ANSI X3.28, subcategory 2.5, A4: polls and nothing else, the address 00 with each digit twice. A selection, which writes, has STX in it.
  odac: (sent) => wrongHex(sent, /^(?:0430303030(?:3\d|[46][1-9a-f]|[57][0-9a]|5f){1,8}05)*$/),
  // The lines of drivers/plastcontrol/example-profile.yaml.
  plastcontrol: (sent) => wrongHex(sent, /^(?:3f(?:5354415445|56414c554520(?:3\d|[46][1-9a-f]|[57][0-9a]|5f|2e){1,12})0d0a)*$/),
  // The frames of drivers/vendor_b/example-profile.yaml: the start-up of a C5 in the mode Extended, and reads of blocks.
  vendor_b: (sent) => wrongHex(sent, /^(?:aa(?:05010501|0402..)....)*$/),
  // The protocol in test/example/gauge/frames.ts: GET alone.
  gauge(sent) {
    const lines = sent.toString("latin1").split("\n");
    const rest = lines.pop();
    const wrong = lines.filter((line) => !/^[0-9]+ GET( [a-z0-9_]+)+$/.test(line)).map((line) => `the line ${JSON.stringify(line)}`);
    return rest === "" ? wrong : [...wrong, "half a line at the end"];
  },
  // The notes at the top of test/support/rack/simulator.ts: greeting, names, read and list; kind 16 writes.
  rack(sent) {
    const wrong: string[] = [];
    for (let at = 0; at < sent.length; ) {
      if (sent.length - at < 8 || sent.readUInt16BE(at) !== 0x524b) return [...wrong, `no rack request at ${at}`];
      const kind = sent.readUInt8(at + 2);
      if (kind < 1 || kind > 4) wrong.push(`kind ${kind} at ${at}`);
      at += 8 + sent.readUInt16BE(at + 6);
      if (at > sent.length) return [...wrong, "half a request at the end"];
    }
    return wrong;
  },
};

/** The same of what is inside TLS, for drivers that encrypt: all bytes of one connection as the device has them. */
export const ALLOWED_INSIDE_TLS: Readonly<Record<string, (sent: Buffer) => string[]>> = {
  // Whole S7CommPlus requests, each with its trailer. The session object is made, given back its version (306), logged in (304, 1846) and
  // deleted; all other functions read.
  s7plus(sent) {
    const wrong: string[] = [];
    let own: number | undefined;
    for (let at = 0; at < sent.length; ) {
      const length = sent.length - at < 8 ? -1 : sent.readUInt16BE(at + 2);
      const frame = sent.subarray(at, at + 4 + length);
      const trailer = sent.toString("hex", at + 4 + length, at + 8 + length);
      if (length < 14 || trailer !== `720${sent[at + 1]}0000`) return [...wrong, `no whole request at ${at}`];
      const [code, session, object, rest] = [
        frame.readUInt16BE(7),
        frame.readUInt32BE(13),
        frame.readUInt32BE(18),
        frame.toString("hex", 22, 27),
      ];
      own ??= code === 0x04ca ? undefined : session;
      const isOwn = session === own && object === own;
      const isGood =
        frame[4] === 0x31 &&
        (code === 0x04ca
          ? own === undefined && frame[1] === 1 && object === 0x11d && frame.toString("hex", 29, 36) === "a1000000d3821f"
          : code === 0x0542
            ? isOwn && rest.startsWith("01018232")
            : code === 0x04f2
              ? isOwn && /^01(8230|8e36)/.test(rest)
              : code === 0x04d4 || code === 0x0586
                ? isOwn
                : (code === 0x054c && object === 0) || code === 0x04bb);
      if (!isGood) wrong.push(`function ${code.toString(16)} of ${object.toString(16)}, ${rest} at ${at}`);
      at += 8 + length;
    }
    return wrong;
  },
};

/** Letters and digits are 30 to 39, 41 to 5a and 61 to 7a. */
const wrongHex = (sent: Buffer, form: RegExp): string[] =>
  form.test(sent.toString("hex")) ? [] : [`${sent.toString("hex").slice(0, 200)} is more than reads`];

const S7_AREAS = new Set([0x81, 0x82, 0x83, 0x84, 0x85, 0x1c, 0x1d]);

/** Header, function and items of an S7 message. */
function wrongS7Job(message: Buffer): string[] {
  if (message.length < 12 || message.readUInt16BE(0) !== 0x3201) return [`the S7 message ${message.toString("hex", 0, 12)}`];
  const [parameters, data, code, items] = [message.readUInt16BE(6), message.readUInt16BE(8), message.readUInt8(10), message.readUInt8(11)];
  if (message.length !== 10 + parameters || data !== 0)
    return [`a job of ${message.length} bytes with ${parameters} and ${data} bytes in it`];
  if (code === 0xf0) return parameters === 8 ? [] : [`a set-up of ${parameters} bytes`];
  if (code !== 0x04) return [`S7 function ${code}`];
  if (items < 1 || items > 20 || parameters !== 2 + items * 12) return [`a read of ${items} items in ${parameters} bytes`];
  return Array.from({ length: items }, (_, i) => message.subarray(12 + i * 12, 24 + i * 12)).flatMap((item) => {
    const [size, area] = [item.readUInt8(3), item.readUInt8(8)];
    const isRead =
      item.readUIntBE(0, 3) === 0x120a10 && S7_AREAS.has(area) && size === (area < 0x20 ? area : 2) && item.readUInt16BE(4) > 0;
    return isRead ? [] : [`the item ${item.toString("hex")}`];
  });
}

/** Register, unregister, and the messages in SendRRData and SendUnitData. */
function wrongEncapsulation(message: Buffer): string[] {
  const command = message.readUInt16LE(0);
  const body = message.subarray(24);
  if (command === 0x65 && body.toString("hex") === "01000000") return [];
  if (command === 0x66 && body.length === 0) return [];
  if ((command !== 0x6f && command !== 0x70) || body.length < 16 || body.readUInt16LE(6) !== 2)
    return [`command ${command} with ${body.length} bytes`];
  const addressEnd = 12 + body.readUInt16LE(10);
  const items = `${body.readUInt16LE(8)} ${body.readUInt16LE(addressEnd)}`;
  const cip = body.subarray(addressEnd + 4);
  if (items !== (command === 0x6f ? "0 178" : "161 177") || cip.length !== body.readUInt16LE(addressEnd + 2))
    return [`items ${items} in ${body.length} bytes`];
  // To a node of DH+: both links and the source node are 0, which is no service of CIP.
  if (command === 0x70 && /^\w{4}0000\w\w00000000000\w/.test(cip.toString("hex", 0, 11))) return wrongPccc(cip.subarray(10));
  return wrongCip(command === 0x6f ? cip : cip.subarray(2), command === 0x6f);
}

const wrongPccc = (command: Buffer): string[] =>
  PCCC_READ.test(command.toString("hex")) ? [] : [`the PCCC command ${command.toString("hex", 0, 12)}`];

/** A number of one byte, or ff and two. */
const N = "(?:ff\\w{4}|(?!ff)\\w\\w)";
/**
 * PCCC commands (Rockwell 1770-6.5.16; 1770-KF2, 5-57): diagnostic status; protected typed logical reads, with two fields of file 0 only; typed
 * reads and word range reads of an address of file and element.
 */
const PCCC_READ = new RegExp(
  `^(?:0600\\w{4}03|0f00\\w{4}(?:a2\\w\\w${N}\\w\\w${N}${N}|a1\\w\\w00\\w\\w${N}|680000\\w{4}06${N}${N}\\w{4}|010000\\w{4}06${N}${N}\\w\\w))$`,
);

/** Services by the object that they are for: 1 and 3 read attributes, 4c and 52 tags, 55 and 5f lists. */
const CIP_READS = [
  /^01 20012401 $/,
  /^03 20ac2401 /,
  /^03 206c(25|2600)/,
  /^4c 206c(25|2600)\w+ \w{12}$/,
  /^55 (91\w+)?206b(25|2600)/,
  /^4c 91\w+ \w{4}$/,
  // Omron: a part by the simple data segment, a page of variables, and what a variable or a type is.
  /^4c 91\w+8003\w{12} 0100$/,
  /^5f 206a25000000 \w{20}$/,
  /^01 206[bc](25|2600)\w+ $/,
  /^52 91\w+ \w{12}$/,
];

/** `isUnconnected`: what goes to the connection manager may be it. */
function wrongCip(cip: Buffer, isUnconnected: boolean): string[] {
  const dataAt = 2 + (cip[1] ?? 0) * 2;
  if (cip.length < dataAt) return [`the CIP message ${cip.toString("hex", 0, 12)}`];
  const words = `${cip.toString("hex", 0, 1)} ${cip.toString("hex", 2, dataAt)} `;
  const data = cip.subarray(dataAt);
  if (words === "0a 20022401 ") {
    const count = data.readUInt16LE(0);
    const begins = Array.from({ length: count }, (_, i) => data.readUInt16LE(2 + i * 2));
    return begins.flatMap((from, i) => wrongCip(data.subarray(from, begins[i + 1] ?? data.length), false));
  }
  if (isUnconnected && words === "52 20062401 ") return wrongCip(data.subarray(4, 4 + data.readUInt16LE(2)), true);
  // Class 3 to the message router, and its end.
  if (isUnconnected && /^(54|5b) 20062401 $/.test(words) && /a3..(\w\w){0,40}(20022401|20a6240[12]2c01)$/.test(data.toString("hex")))
    return [];
  if (isUnconnected && words === "4e 20062401 ") return [];
  // Execute PCCC: behind the requester's id of seven bytes.
  if (words === "4b 20672401 " && data[0] === 7) return wrongPccc(data.subarray(7));
  return CIP_READS.some((form) => form.test(words + data.toString("hex")))
    ? []
    : [`the CIP service ${words}${data.toString("hex", 0, 12)}`];
}

/** The requests of the gateway protocol, and the fields that each has. */
const GATEWAY_READS: Readonly<Record<string, readonly string[]>> = {
  hello: ["id", "request", "versions", "client", "max_line_bytes"],
  servers: ["id", "request", "within_ms"],
  open: ["id", "request", "target", "within_ms"],
  browse: ["id", "request", "path", "after", "max", "within_ms"],
  resolve: ["id", "request", "items", "within_ms"],
  read: ["id", "request", "epoch", "items", "within_ms"],
};

/** The services that read, find or keep up the session; the three-letter ones come in messages of that type. */
const OPCUA_READS: Readonly<Record<number, string>> = {
  428: "GetEndpoints",
  446: "OPN",
  452: "CLO",
  461: "CreateSession",
  467: "ActivateSession",
  473: "CloseSession",
  527: "Browse",
  533: "BrowseNext",
  554: "TranslateBrowsePathsToNodeIds",
  560: "RegisterNodes",
  631: "Read",
  751: "CreateMonitoredItems",
  781: "DeleteMonitoredItems",
  787: "CreateSubscription",
  826: "Publish",
  847: "DeleteSubscriptions",
};
