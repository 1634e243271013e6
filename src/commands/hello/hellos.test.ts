import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { fence, HELLOS, lookAt, MAX_HEARD_BYTES, recognise } from "./hellos.ts";
import { deviceWords, recognisedWords } from "./recognised.ts";

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(" ", ""), "hex");
const helloOf = (name: string) => HELLOS.find((hello) => hello.name === name) ?? expect.fail(`there is no hello ${name}`);
const ascii = (text: string, bytes: number): string => Buffer.from(text.padEnd(bytes, "\0"), "latin1").toString("hex");

const CONFIRM = "0300 000b 06 d0 0001 0001 00";
const SETUP_ANSWER = "0300 001b 02f080 3203 0000 0001 0008 0000 0000 f000 0001 0001 00f0";
/** Three records: the module, its hardware, its firmware. */
const RECORDS = [
  `0001 ${ascii("6ES7 315-2EH14-0AB0 ", 20)} 00c0 0003 0001`,
  `0006 ${ascii("6ES7 315-2EH14-0AB0 ", 20)} 00c0 0003 0001`,
  `0007 ${ascii("", 20)} 00c0 5603 0206`,
].join("");
const SZL_ANSWER = `0300 007d 02f080 3207 0000 0002 000c 0060 000112 08 12 84 01 01 0000 0000 ff09 005c 0011 0001 001c 0003 ${RECORDS}`;
const ENIP_BODY = `0100 0c00 2d00 0100 0002 af12 0a000005 0000000000000000 0100 0e00 a600 21 0b 6000 eeffc000 0b ${ascii("1756-L83E/B", 11)} 03`;
const FINS_NODES = "46494e53 00000010 00000001 00000000 000000ef 0000000a";
const FINS_DATA = `46494e53 00000072 00000002 00000000 c0 00 02 00 ef 00 00 0a 00 00 0501 0000 ${ascii("CP1L-EM40DR-D", 20)} ${ascii("01.10", 20)}${"00".repeat(52)}`;
const MODBUS_OBJECTS = `0001 0000 002e ff 2b0e 01 01 00 00 03 00 12 ${ascii("Schneider Electric", 18)} 01 09 ${ascii("TM221CE24", 9)} 02 05 ${ascii("V1.10", 5)}`;
const ACK = "41434b46 1c000000 00000000 00000100 00000100 00000000 00000000";

/** Hello, answer, and the words for what was recognised. */
const ANSWERS: readonly (readonly [hello: string, answer: string, words: string])[] = [
  ["S7, slot 2", CONFIRM + SETUP_ANSWER + SZL_ANSWER, "S7 (Siemens 6ES7 315-2EH14-0AB0, firmware 3.2.6)"],
  ["S7, slot 1", CONFIRM + SETUP_ANSWER, "S7"],
  ["S7, slot 1", CONFIRM, "ISO on TCP (RFC 1006)"],
  ["S7, slot 2", "0300 000b 06 80 0001 0001 03", "ISO on TCP (RFC 1006)"],
  ["S7comm-plus", `${CONFIRM} 0300 0010 02f080 7201 0001 00 7201 0000`, "S7comm-plus (Siemens)"],
  [
    "EtherNet/IP",
    `6300 ${"3300"} 00000000 00000000 0000000000000000 00000000 ${ENIP_BODY}`,
    "EtherNet/IP (Rockwell Automation 1756-L83E/B, firmware 33.011)",
  ],
  ["EtherNet/IP", `6300 0000 00000000 01000000 0000000000000000 00000000`, "EtherNet/IP"],
  ["FINS/TCP", FINS_NODES + FINS_DATA, "FINS/TCP (Omron CP1L-EM40DR-D, firmware 01.10)"],
  ["FINS/TCP", FINS_NODES, "FINS/TCP (Omron)"],
  ["FINS/TCP", "46494e53 00000008 00000003 00000020", "FINS/TCP (Omron)"],
  ["Modbus TCP", MODBUS_OBJECTS, "Modbus TCP (Schneider Electric TM221CE24, firmware V1.10)"],
  ["Modbus TCP", "0001 0000 0003 ff ab 01", "Modbus TCP"],
  ["OPC UA", ACK, "OPC UA"],
  ["OPC UA", "45525246 10000000 00008080 ffffffff", "OPC UA"],
  ["HTTP", Buffer.from("HTTP/1.0 200 OK\r\nServer: Boa/0.94\r\n\r\n").toString("hex"), "HTTP (Boa/0.94)"],
  ["Modbus TCP", Buffer.from("SSH-2.0-OpenSSH_9.6\r\n").toString("hex"), "SSH (SSH-2.0-OpenSSH_9.6)"],
  ["Modbus TCP", Buffer.from("HTTP/1.1 400 Bad Request\r\nServer: nginx\r\n\r\n").toString("hex"), "HTTP (nginx)"],
  ["EtherNet/IP", "1503 0100 02 0246", "TLS"],
  ["S7, slot 2", ACK, "OPC UA"],
  ["HTTP", FINS_NODES, "FINS/TCP (Omron)"],
];

const wordsOf = (name: string, bytes: Buffer): string | undefined => {
  const found = recognise(helloOf(name), bytes);
  return found && recognisedWords(found);
};

describe("hellos", () => {
  it("are these bytes and no others", () =>
    expect(HELLOS.flatMap(({ name, requests }) => requests.map(([, bytes]) => `${name}: ${bytes.toString("hex")}`))).toMatchInlineSnapshot(`
      [
        "EtherNet/IP: 630000000000000000000000000000000000000000000000",
        "Modbus TCP: 000100000005ff2b0e0100",
        "OPC UA: 48454c46380000000000000000000100000001000000000000000000180000006f70632e7463703a2f2f6c6f63616c686f73743a34383430",
        "FINS/TCP: 46494e530000000c000000000000000000000000",
        "FINS/TCP: 46494e53000000150000000200000000800002000a0000ef0000050100",
        "S7, slot 2: 0300001611e00000000100c0010ac1020100c2020202",
        "S7, slot 2: 0300001902f08032010000000100080000f0000001000101e0",
        "S7, slot 2: 0300002102f080320700000002000800080001120411440100ff09000400110001",
        "S7, slot 1: 0300001611e00000000100c0010ac1020100c2020201",
        "S7, slot 1: 0300001902f08032010000000100080000f0000001000101e0",
        "S7, slot 1: 0300002102f080320700000002000800080001120411440100ff09000400110001",
        "S7comm-plus: 030000241fe00000000100c0010ac1020600c21053494d415449432d524f4f542d484d49",
        "S7comm-plus: 0300002102f0807201001231000005b30000000100000000300000000072010000",
        "HTTP: 48454144202f20485454502f312e300d0a0d0a",
      ]
    `));

  it.each(ANSWERS)("%s: %s is %s", (name, answer, words) => expect(wordsOf(name, hex(answer))).toBe(words));

  it.each(ANSWERS)("%s: %s is known only when it is there, wherever it is cut", (name, answer, words) => {
    const [bytes, hello] = [hex(answer), helloOf(name)];
    let sent = 0;
    for (let end = 0; end < bytes.length; end++) {
      const look = lookAt(hello, bytes.subarray(0, end));
      // A request that was sent stays sent, and only a whole answer ends the talk.
      expect(look.requests.length).toBeGreaterThanOrEqual(sent);
      sent = look.requests.length;
      if (look.isDone) expect(look.found && recognisedWords(look.found)).toBe(words);
      if (look.found) expect(words.startsWith(look.found.protocol) || look.isVague === true).toBe(true);
    }
  });

  it("answer in part with the next request", () => {
    const s7 = helloOf("S7, slot 2");
    const lengths = [CONFIRM, CONFIRM + SETUP_ANSWER].map((answer) => lookAt(s7, hex(answer)).requests.length);
    expect([lookAt(s7, hex("")).requests.length, ...lengths]).toEqual([1, 2, 3]);
    expect(lookAt(helloOf("FINS/TCP"), hex(FINS_NODES)).requests[1]?.toString("hex")).toBe(
      "46494e530000001500000002000000008000020" + "00a0000ef0000050100",
    );
  });

  it("know nothing of any other bytes, do not throw, and send nothing that the fence refuses", () => {
    const starts = ANSWERS.map(([, answer]) => hex(answer));
    const spoilt = fc
      .tuple(fc.constantFrom(...starts), fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 6 }), fc.uint8Array({ maxLength: 40 }))
      .map(([start, changes, more]) => {
        const bytes = Buffer.concat([start, more]);
        for (const [at, byte] of changes) bytes[at % bytes.length] = byte;
        return bytes;
      });
    const any = fc.oneof(
      fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
      spoilt,
    );
    fc.assert(
      fc.property(any, (bytes) => {
        for (const hello of HELLOS) {
          const { found, requests } = lookAt(hello, bytes);
          expect(requests.map(fence)).toEqual(requests.map(() => true));
          if (found) expect(deviceWords(found)).toMatch(/^[\x20-\x7e]{0,300}$/);
        }
      }),
    );
    expect(recognise(helloOf("HTTP"), Buffer.alloc(4 * MAX_HEARD_BYTES, 0x20))).toBeUndefined();
  });

  it("pass the fence, and no change of one of them does", () => {
    for (const { requests } of HELLOS)
      for (const [, bytes] of requests) {
        expect(fence(bytes)).toBe(true);
        for (let at = 0; at < bytes.length; at++)
          for (const flip of [1, 0x80]) {
            const changed = Buffer.from(bytes);
            changed[at] = (changed[at] ?? 0) ^ flip;
            // Other nodes of a Controller Data Read.
            const isNode = bytes.length === 29 && (at === 20 || at === 23);
            expect(fence(changed)).toBe(isNode || `${bytes.length} bytes that are not a hello`);
          }
        expect(fence(bytes.subarray(1))).not.toBe(true);
        expect(fence(Buffer.concat([bytes, Buffer.of(0)]))).not.toBe(true);
      }
    // FINS commands that write memory, and run and stop the controller.
    for (const code of ["0102", "0401", "0402"])
      expect(fence(hex(`46494e53 00000015 00000002 00000000 80 00 02 00 0a 00 00 ef 00 00 ${code} 00`))).not.toBe(true);
  });
});
