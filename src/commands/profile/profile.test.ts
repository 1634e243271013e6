import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { commandIo, runCommand } from "../testing.ts";
import { checkProfileFile, replayCapture } from "./profile.ts";

const ROOT = path.resolve(import.meta.dirname, "../../..");
const ODAC = path.join(ROOT, "config/profiles/odac-host.yaml");
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), "profile-"));
});
afterAll(() => rmSync(folder, { recursive: true }));
const write = (name: string, content: string | Buffer): string => {
  const file = path.join(folder, name);
  writeFileSync(file, content);
  return file;
};

/** An IPv4 packet with TCP; `fromDevice`: from port 2020. */
function packet(isFromDevice: boolean, sequence: number, payload: string): Buffer {
  const tcp = Buffer.alloc(20);
  tcp.writeUInt16BE(isFromDevice ? 2020 : 50_000, 0);
  tcp.writeUInt16BE(isFromDevice ? 50_000 : 2020, 2);
  tcp.writeUInt32BE(sequence, 4);
  tcp.writeUInt8(5 << 4, 12);
  const ip = Buffer.from("4500000000004000400600000a0000010a000002", "hex");
  if (isFromDevice) ip.set([10, 0, 0, 2, 10, 0, 0, 1], 12);
  ip.writeUInt16BE(40 + payload.length, 2);
  return Buffer.concat([ip, tcp, Buffer.from(payload, "latin1")]);
}

// The poll of PV in group 1, unit 7; its answer in two segments, the first of them twice; a code that is not there.
const PACKETS = [
  packet(false, 100, "\x041177PV\x05"),
  packet(true, 500, "\x02PV21"),
  packet(true, 500, "\x02PV21"),
  packet(true, 505, "5.5\x03\x28"),
  packet(false, 108, "\x041177XX\x05"),
  packet(true, 510, "\x04"),
];

/** Raw IP (link type 101), little-endian. */
function pcap(packets: readonly Buffer[]): Buffer {
  const header = Buffer.from("d4c3b2a1020004000000000000000000ffff000065000000", "hex");
  const records = packets.map((bytes) => {
    const record = Buffer.alloc(16);
    record.writeUInt32LE(bytes.length, 8);
    record.writeUInt32LE(bytes.length, 12);
    return Buffer.concat([record, bytes]);
  });
  return Buffer.concat([header, ...records]);
}

/** Ethernet, big-endian, with a block in between that nobody knows. */
function pcapng(packets: readonly Buffer[]): Buffer {
  const block = (type: number, body: Buffer): Buffer => {
    const padded = Buffer.concat([body, Buffer.alloc((4 - (body.length % 4)) % 4)]);
    const ends = Buffer.alloc(8);
    ends.writeUInt32BE(type, 0);
    ends.writeUInt32BE(padded.length + 12, 4);
    return Buffer.concat([ends, padded, ends.subarray(4)]);
  };
  const enhanced = packets.map((ip) => {
    const bytes = Buffer.concat([Buffer.from("0000000000010000000000020800", "hex"), ip]);
    const fields = Buffer.alloc(20);
    fields.writeUInt32BE(bytes.length, 12);
    fields.writeUInt32BE(bytes.length, 16);
    return block(6, Buffer.concat([fields, bytes]));
  });
  const section = block(0x0a0d0d0a, Buffer.from("1a2b3c4d00010000ffffffffffffffff", "hex"));
  return Buffer.concat([section, block(1, Buffer.from("0001000000040000", "hex")), block(0xbad, Buffer.alloc(3)), ...enhanced]);
}

const HOW = ["--port", "2020", "--detail", "protocol_override=host", "--parameter", "group=1", "--parameter", "unit=7"];

test.each([
  ["pcap", pcap],
  ["pcapng", pcapng],
])("replay shows what a profile makes of a recording (%s)", async (name, form) => {
  const { code, out, err } = await runCommand("profile", "replay", ODAC, write(name, form(PACKETS)), ...HOW);
  expect([code, err]).toEqual([0, ""]);
  expect(out.split("\n")).toEqual([
    "-> 0431313737505605  parameter/PV",
    "<- 0250563231352e350328  parameter/PV",
    "     parameter/PV = 215.5",
    "-> 0431313737585805  parameter/XX",
    "<- 04  the controller ended the poll (EOT): it has no parameter with this code",
    "",
    "4 frames, 0 that the profile does not know",
    "",
  ]);
});

test("replay names frames that the profile does not know, and ends with 1", async () => {
  const packets = [packet(false, 1, "\x041177\x02PV99\x03\x05"), packet(true, 1, "\x02PV1\x03\x00"), packet(true, 7, "\x02PV")];
  const { code, out } = await runCommand("profile", "replay", ODAC, write("bad", pcap(packets)), ...HOW, "--json");
  expect(code).toBe(1);
  expect(JSON.parse(out)).toMatchObject({
    unknown: 3,
    frames: [
      { isFromDevice: false, problem: expect.stringContaining("is not a request of the profile ODAC host mode") },
      { problem: expect.stringContaining("wrong checksum") },
      { problem: "a frame that does not end" },
    ],
  });
});

test.each([
  [["--port", "0"], /--port 0: expected the port of the device/],
  [["--port", "99", "--detail", "protocol_override=host"], /there is no TCP connection with port 99 in it/],
  [["--port", "2020", "--detail", "protocol_override=odac"], /is for protocol_override host or none; the data source has odac/],
  [["--port", "2020", "--detail", "protocol_override=host", "--parameter", "x"], /--parameter x: expected NAME=VALUE/],
])("replay with %j says what would be right", async (words, said) => {
  const { code, err } = await runCommand("profile", "replay", ODAC, write("good", pcap(PACKETS)), ...words);
  expect(code).toBe(2);
  expect(err).toMatch(said);
});

test("replay names the package that reads captures where it is missing; check needs none", async () => {
  const io = { ...commandIo({}), addOn: () => undefined };
  await expect(replayCapture(io, ODAC, write("good", pcap(PACKETS)), { port: "2020" })).rejects.toThrow(
    "it is in the package collector-workbench (sudo apt install ./collector-workbench_*.deb)",
  );
  expect(await checkProfileFile(io, ODAC, {})).toBe(0);
});

test("a file that is no capture is one sentence", async () => {
  const { code, err } = await runCommand("profile", "replay", ODAC, ODAC, ...HOW);
  expect([code, err]).toEqual([2, expect.stringMatching(/begins as neither pcap nor pcapng does\n$/)]);
});

test("check shows all that can be sent, or each problem with its line", async () => {
  const good = await runCommand("profile", "check", ODAC);
  expect(good).toMatchObject({ code: 0, err: "" });
  expect(good.out).toContain("Verified on: no device");
  expect(good.out).toContain("  parameter: {group:d1}{group:d1}{unit:d1}{unit:d1}{code:s}  -- one parameter by its code");
  expect(good.out).toContain("  parameter/CODE  from parameter");
  expect(JSON.parse((await runCommand("profile", "check", ODAC, "--json")).out)).toMatchObject({
    ok: true,
    verified_on: [],
    variables: ["parameter"],
  });
  const file = write("bad.yaml", "profile: 1\nname: x\nfor: [odac]\nframing: { type: fixd }\nrequests: {}\nvariables: {}\n");
  const bad = await runCommand("profile", "check", file);
  expect(bad.code).toBe(2);
  expect(bad.err).toContain(`${file}:4: framing.type: `);
  expect((await runCommand("profile", "check", path.join(folder, "absent.yaml"))).err).toContain("does not exist");
});

test("every whole profile of the page passes its check, one for each framing", async () => {
  const page = readFileSync(path.join(ROOT, "docs/profiles.md"), "utf8");
  const profiles = [...page.matchAll(/^```yaml\n(profile: 1\n[\s\S]*?)^```$/gm)].map(([, text]) => text ?? "");
  const framings = profiles.map((text) => /type: (delimiter|length|fixed|control|x328)\b/.exec(text)?.[1]);
  expect(framings.toSorted()).toEqual(["control", "delimiter", "fixed", "length", "x328"]);
  for (const [at, text] of profiles.entries()) {
    const { code, out, err } = await runCommand("profile", "check", write(`page-${at}.yaml`, text));
    expect({ code, err, text }).toMatchObject({ code: 0, err: "" });
    expect(out).toContain(/^name: (.*)$/m.exec(text)?.[1] ?? "a name");
  }
});
