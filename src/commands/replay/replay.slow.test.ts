import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import net, { type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { PassThrough } from "node:stream";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import type { Simulator } from "../../../drivers/simulator.ts";
import { pcap, pcapng, RecordedConnection, udpPacket } from "../../../test/support/capture-file.ts";
import { type RecordingProxy, recordTcp, recordUdp } from "../../../test/support/recording-proxy.ts";
import { commandIo, runCommand, runCommandWith, settingsFile } from "../testing.ts";
import { replay } from "./replay.ts";

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), "replay-"));
  settingsFile(folder, {});
});
afterAll(() => rmSync(folder, { recursive: true }));

interface Replayed {
  readonly port: number;
  /** Ends it; gives its last line. */
  stop(): Promise<{ readonly code: number; readonly lines: readonly Record<string, Record<string, unknown>>[] }>;
}

let files = 0;
/** Starts `collector replay` of these packets on a free port. */
async function startReplay(packets: readonly Buffer[], form: typeof pcap, ...words: string[]): Promise<Replayed> {
  const file = path.join(folder, `${++files}.pcapng`);
  writeFileSync(file, form(packets));
  const stop = new AbortController();
  let out = "";
  const ended = runCommandWith(
    { signal: stop.signal, onOut: (text) => (out += text) },
    ...["replay", file, "--listen", "127.0.0.1:0", "--json", "--config", path.join(folder, "collector.yaml"), ...words],
  );
  const lines = () =>
    out
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line));
  open.push(async () => {
    stop.abort();
    await ended;
  });
  const first = await Promise.race([vi.waitFor(() => expect(lines()).not.toEqual([]), { timeout: 10_000 }).then(() => undefined), ended]);
  expect(first, first?.err).toBeUndefined();
  return {
    port: lines()[0].listening.port,
    async stop() {
      stop.abort();
      const { code } = await ended;
      return { code, lines: lines() };
    },
  };
}

interface Row {
  readonly type: string;
  readonly devicePort: number;
  readonly start: () => Promise<Pick<Simulator, "port" | "close">>;
  readonly record: (targetPort: number, devicePort: number) => Promise<RecordingProxy>;
  /** Details, settings and addresses as a person types them. */
  readonly words: readonly string[];
  /** Settings by which the same addresses are asked for in other requests. */
  readonly otherPlan?: readonly string[];
}

const FINS = ["local_address=0.0.0", "remote_address=0.10.0", "D100:uint16", "D103:uint32", "D109:real", "W10.03", "D130:string(12)"];
const ROWS: Readonly<Record<string, Row>> = {
  "Modbus TCP": {
    type: "modbus_tcp",
    devicePort: 502,
    start: async () => (await import("../../../drivers/modbus_tcp/simulator.ts")).startSimulator(),
    record: recordTcp,
    words: ["holding:0:int16", "holding:3:float32", "holding:60:string(20)", "input:0:float32", "coil:0", "2/holding:0", "holding:500"],
    otherPlan: ["max_registers=11", "max_gap=0"],
  },
  "Modbus RTU over TCP": {
    type: "modbus_tcp",
    devicePort: 4001,
    start: async () => (await import("../../../drivers/modbus_tcp/simulator.ts")).startFramed({ framing: "rtu" }),
    record: recordTcp,
    words: ["framing=rtu", "holding:0:int16", "holding:3:float32", "holding:60:string(20)", "coil:0", "holding:500"],
    otherPlan: ["max_registers=11", "max_gap=0"],
  },
  "Modbus over UDP": {
    type: "modbus_tcp",
    devicePort: 502,
    start: async () => (await import("../../../drivers/modbus_tcp/simulator.ts")).startFramed({ transport: "udp" }),
    record: recordUdp,
    words: ["transport=udp", "holding:0:int16", "holding:3:float32", "holding:60:string(20)"],
    otherPlan: ["max_registers=11", "max_gap=0"],
  },
  S7: {
    type: "s7",
    devicePort: 102,
    start: async () => (await import("../../../drivers/s7/simulator.ts")).startSimulator(),
    record: recordTcp,
    words: ["slot=1", "DB1.DBD4:real", "DB1.DBW8:int", "DB10.DBX0.1", "MW20", "T5:S5TIME", "DB99.DBW0"],
    otherPlan: ["max_items=1", "max_gap=0"],
  },
  "FINS over TCP": {
    type: "fins",
    devicePort: 9600,
    start: async () => (await import("../../../drivers/fins/simulator.ts")).startSimulator({ transports: { tcp: true, udp: false } }),
    record: recordTcp,
    words: ["transport=tcp", ...FINS],
    otherPlan: ["max_items=0", "max_gap=0"],
  },
  "FINS over UDP": {
    type: "fins",
    devicePort: 9600,
    start: async () => (await import("../../../drivers/fins/simulator.ts")).startSimulator({ transports: { tcp: false, udp: true } }),
    record: recordUdp,
    words: ["transport=udp", ...FINS],
    otherPlan: ["max_items=0", "max_gap=0"],
  },
  "EtherNet/IP": {
    type: "vendor_a",
    devicePort: 44_818,
    start: async () => (await import("../../../drivers/vendor_a/simulator.ts")).startSimulator(),
    record: recordTcp,
    words: ["NoSuchTag"],
    otherPlan: ["connected=false"],
  },
  "the gateway protocol": {
    type: "vendor_gateway",
    devicePort: 7000,
    start: async () => (await import("../../../drivers/vendor_gateway/simulator.ts")).startSimulator(),
    record: recordTcp,
    words: ["protocol=OPC_DA", "server_name=Plant.OpcDa.1", "Press.Force", "Press.Strokes", "Press.Tool", "Press.Energy", "Press.Nothing"],
  },
};

const read = (type: string, port: number, words: readonly string[]) =>
  runCommand("read", type, "host=127.0.0.1", `port=${port}`, ...words, "--json", "--config", path.join(folder, "collector.yaml"));

/** What of an answer does not depend on when it was asked. */
const valuesOf = (out: string): unknown =>
  (JSON.parse(out).values as { address: string; value: unknown; fault?: string }[]).map(({ address, value, fault }) => [
    address,
    value,
    fault,
  ]);

describe.each(Object.entries(ROWS))("a recording of %s", (_, { type, devicePort, start, record, words, otherPlan }) => {
  it("is read by the driver with the same values as the device, twice at once and again, and in other requests", async () => {
    const device = await start();
    open.push(() => device.close());
    const proxy = await record(device.port, devicePort);
    const named =
      type === "vendor_a"
        ? (device as Simulator).variables.filter(({ address }) => !/[[:]/.test(address)).map(({ address, type: of }) => `${address}:${of}`)
        : [];
    const asked = [...words, ...named.slice(0, 12)];
    const real = await read(type, proxy.port, asked);
    await proxy.close();
    await device.close();
    open.length = 0;
    expect(real.out, real.err).toContain("values");

    const served = await startReplay(proxy.packets, pcapng);
    const both = await Promise.all([read(type, served.port, asked), read(type, served.port, asked)]);
    for (const one of [...both, await read(type, served.port, asked)]) {
      expect(valuesOf(one.out)).toEqual(valuesOf(real.out));
      expect(one.code).toBe(real.code);
    }
    const { code, lines } = await served.stop();
    expect(code).toBe(0);
    expect(lines[0]).toMatchObject({ device: { port: devicePort, type } });
    expect(lines.at(-1)?.["summary"]).toMatchObject({ unknown: 0, answered_by_place: 0, refused: 0 });
    expect(lines.at(-1)?.["summary"]?.["answered"]).toBeGreaterThan(2);
    if (!otherPlan) return;

    const memory = await startReplay(proxy.packets, pcapng);
    const other = await read(type, memory.port, [...otherPlan, ...asked.toReversed()]);
    expect(valuesOf(other.out), other.err).toEqual((valuesOf(real.out) as readonly unknown[]).toReversed());
    expect((await memory.stop()).lines.at(-1)?.["summary"]?.["answered_from_memory"]).toBeGreaterThan(1);
  });
});

const modbus = (transaction: number, at: number): Buffer => Buffer.from([0, transaction, 0, 0, 0, 6, 1, 3, 0, at, 0, 1]);
const register = (transaction: number, value: number): Buffer => Buffer.from([0, transaction, 0, 0, 0, 5, 1, 3, 2, 0, value]);

/** A capture of one connection: requests and answers in turn. */
function talk(devicePort: number, turns: readonly (readonly ["client" | "device", Buffer | string])[], packets: Buffer[] = []): Buffer[] {
  const connection = new RecordedConnection(packets, devicePort, 50_000 + packets.length);
  for (const [who, said] of turns) connection.says(who, typeof said === "string" ? Buffer.from(said, "latin1") : said);
  return packets;
}

/** A client that waits for so many bytes after each thing it says. */
async function client(port: number): Promise<{ ask(bytes: Buffer | string, wanted: number): Promise<string>; closed: Promise<void> }> {
  const socket = net.connect({ port, host: "127.0.0.1" });
  open.push(() => socket.destroy());
  socket.on("error", () => {});
  let got = Buffer.alloc(0);
  socket.on("data", (bytes) => (got = Buffer.concat([got, bytes])));
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  return {
    closed,
    async ask(bytes, wanted) {
      if (bytes.length > 0) socket.write(bytes);
      await vi.waitFor(() => expect(got.length).toBeGreaterThanOrEqual(wanted), { timeout: 10_000, interval: 5 });
      const answer = got.subarray(0, wanted).toString("latin1");
      got = got.subarray(wanted);
      return answer;
    },
  };
}

describe("collector replay", () => {
  it("gives the answers of a request in the order of the capture, then the last again; numbers are the request's", async () => {
    const turns = [7, 7, 8, 9].flatMap(
      (value, i) =>
        [
          ["client", modbus(i, 5)],
          ["device", register(i, value)],
        ] as const,
    );
    const served = await startReplay(talk(502, turns), pcap);
    const one = await client(served.port);
    const values: number[] = [];
    for (let i = 0; i < 6; i++) {
      const answer = await one.ask(modbus(100 + i, 5), 11);
      expect(answer.charCodeAt(1)).toBe(100 + i);
      values.push(answer.charCodeAt(10));
    }
    expect(values).toEqual([7, 7, 8, 9, 9, 9]);
  });

  it("has one moment for what it answers literally and from memory", async () => {
    const turns = [1, 2, 3].flatMap(
      (cycle) =>
        [
          ["client", modbus(cycle, 5)],
          ["device", register(cycle, cycle)],
          ["client", modbus(cycle, 6)],
          ["device", register(cycle, 10 + cycle)],
        ] as const,
    );
    const served = await startReplay(talk(502, turns), pcap);
    const one = await client(served.port);
    const both = Buffer.from([0, 9, 0, 0, 0, 6, 1, 3, 0, 5, 0, 2]);
    const valuesOf = (answer: string): readonly number[] => [answer.charCodeAt(10), answer.charCodeAt(12)];
    expect(valuesOf(await one.ask(both, 13))).toEqual([1, 11]);
    // The first answer of the capture holds from the beginning; the third of register 5 comes before that of register 6.
    for (const value of [1, 2, 3]) expect((await one.ask(modbus(9, 5), 11)).charCodeAt(10)).toBe(value);
    expect(valuesOf(await one.ask(both, 13))).toEqual([3, 12]);
    expect(valuesOf(await one.ask(both, 13))).toEqual([3, 13]);
    expect((await served.stop()).lines.at(-1)?.["summary"]).toMatchObject({ answered: 6, answered_from_memory: 3, unknown: 0 });
  });

  it("shows what it does not know once, with what is nearest; a request without an answer stays without; all is counted", async () => {
    const packets = talk(502, [
      ["client", modbus(1, 5)],
      ["device", register(1, 7)],
      ["client", modbus(2, 6)],
    ]);
    const served = await startReplay(packets, pcap);
    const one = await client(served.port);
    // Two at once, one in two pieces, one that the capture has no answer for, one twice that it has not.
    const last = modbus(9, 5);
    const asked = [modbus(3, 5), modbus(4, 5), modbus(5, 6), modbus(6, 77), modbus(7, 77), last.subarray(0, 5)];
    const refused = [6, 7].map((transaction) => Buffer.from([0, transaction, 0, 0, 0, 3, 1, 0x83, 2]));
    const answers = Buffer.concat([register(3, 7), register(4, 7), ...refused]);
    expect(await one.ask(Buffer.concat(asked), answers.length)).toBe(answers.toString("latin1"));
    expect(await one.ask(last.subarray(5), 11)).toBe(register(9, 7).toString("latin1"));
    const { lines } = await served.stop();
    const nearest = modbus(1, 5).toString("hex");
    expect(lines.slice(1, -1)).toEqual([
      { memory: { ranges: 1, left_out: 0 } },
      { unknown: { request: modbus(6, 77).toString("hex"), nearest } },
    ]);
    expect(lines.at(-1)).toEqual({
      summary: {
        connections: 1,
        refused: 0,
        requests: 6,
        answered: 3,
        answered_by_place: 0,
        answered_from_memory: 0,
        silent: 1,
        unknown: 2,
        ended: 0,
      },
    });
  });

  it("ends a connection on which no message of the protocol comes, and serves the next one", async () => {
    const served = await startReplay(
      talk(502, [
        ["client", modbus(1, 5)],
        ["device", register(1, 7)],
      ]),
      pcap,
    );
    const bad = await client(served.port);
    await Promise.all([bad.ask("GET / HTTP/1.1\r\n\r\n", 0), bad.closed]);
    expect(await (await client(served.port)).ask(modbus(3, 5), 11)).toBe(register(3, 7).toString("latin1"));
    expect((await served.stop()).lines.at(-1)?.["summary"]).toMatchObject({ ended: 1, unknown: 1, answered: 1 });
  });

  it("of an unknown protocol: a greeting, requests in pieces, the same bytes, and a counter by its place", async () => {
    const packets = talk(4001, [
      ["device", "READY\r\n"],
      ["client", "#1 ?W\r"],
      ["device", "12.5 kg\r\n"],
      ["client", "#2 ?W\r"],
      ["device", "13.0 kg\r\n"],
      ["client", "?ID\r"],
      ["device", "SCALE\r\n"],
    ]);
    const served = await startReplay(packets, pcapng);
    const one = await client(served.port);
    expect(await one.ask("", 7)).toBe("READY\r\n");
    expect(await one.ask("#1 ", 0)).toBe("");
    expect(await one.ask("?W\r", 9)).toBe("12.5 kg\r\n");
    expect(await one.ask("#7 ?W\r", 9)).toBe("13.0 kg\r\n");
    expect(await one.ask("?ID\r", 7)).toBe("SCALE\r\n");
    expect(await one.ask("?ID\r?ID\r", 14)).toBe("SCALE\r\nSCALE\r\n");
    const { lines } = await served.stop();
    expect(lines[0]).toMatchObject({ device: { type: "bytes" } });
    expect(lines.at(-1)?.["summary"]).toMatchObject({ requests: 5, answered: 5, answered_by_place: 1 });
  });

  it("no more clients are served at once than there is room for", async () => {
    const served = await startReplay(
      talk(502, [
        ["client", modbus(1, 5)],
        ["device", register(1, 7)],
      ]),
      pcap,
    );
    const clients = await Promise.all(Array.from({ length: 64 }, () => client(served.port)));
    await Promise.all(clients.map((one) => one.ask(modbus(1, 5), 11)));
    await (await client(served.port)).closed;
    expect((await served.stop()).lines.at(-1)?.["summary"]).toMatchObject({ connections: 64, refused: 1 });
  });

  const file = (name: string, packets: readonly Buffer[]): string => {
    const at = path.join(folder, name);
    writeFileSync(at, pcap(packets));
    return at;
  };
  const refused = async (...words: string[]): Promise<string> => {
    const { code, err, out } = await runCommand("replay", ...words, "--config", path.join(folder, "collector.yaml"));
    expect([code, out]).toEqual([2, ""]);
    return err;
  };
  const GOOD = [
    ["client", modbus(1, 5)],
    ["device", register(1, 7)],
  ] as const;

  it("lists the devices where a capture has several, and serves the one that is named", async () => {
    const packets = talk(
      4001,
      [
        ["client", "a"],
        ["device", "b"],
        ["client", "c"],
        ["device", "d"],
      ],
      talk(502, GOOD),
    );
    const several = file("several.pcap", packets);
    expect(await refused(several)).toMatch(
      /has several devices; name one with --device:\n.*--device 10\.0\.0\.2:502 {2}Modbus TCP: 1 request, 1 answer, 1 connection\n.*10\.0\.0\.2:4001 {2}bytes over TCP: 2 requests/,
    );
    expect(await refused(several, "--device", "10.0.0.9")).toContain("has no conversation with 10.0.0.9");
    const ends = { fromPort: 50_001, toPort: 502 };
    const both = [
      ...talk(502, GOOD),
      udpPacket({ ...ends, payload: modbus(1, 5) }),
      udpPacket({ from: "10.0.0.2", to: "10.0.0.1", fromPort: 502, toPort: 50_001, payload: register(1, 9) }),
    ];
    const transports = file("both.pcap", both);
    expect(await refused(transports)).toMatch(
      /--device 10\.0\.0\.2:502\/tcp {2}Modbus TCP.*\n.*--device 10\.0\.0\.2:502\/udp {2}Modbus TCP/,
    );
    expect(await refused(transports, "--device", "10.0.0.2/sctp")).toContain("--device 10.0.0.2/sctp: expected an address");
    const stopped = await (await startReplay(both, pcap, "--device", "10.0.0.2:502/udp")).stop();
    expect(stopped.lines[0]).toMatchObject({ listening: { transport: "udp" } });
    const served = await startReplay(packets, pcap, "--device", "10.0.0.2:502");
    expect(await (await client(served.port)).ask(modbus(8, 5), 11)).toBe(register(8, 7).toString("latin1"));
  });

  it("says what is wrong with what was typed, or with the capture", async () => {
    const good = file("good.pcap", talk(502, GOOD));
    expect(await refused(good, "--type", "modbus")).toMatch(/--type modbus: expected opcua, .*; do you mean modbus_tcp\?/);
    expect(await refused(good, "--device", "press")).toContain("--device press: expected an address, address:port or address:port/udp");
    expect(await refused(good, "--listen", "here:1")).toContain("--listen here:1: expected an address of this machine and a port");
    expect(await refused(good, "--listen", "127.0.0.1:70000")).toContain("expected an address of this machine and a port");
    expect(await refused(good, "--listen", "192.0.2.1:1502")).toMatch(
      /192\.0\.2\.1 is not among the addresses that policy\.yaml opens.*listen: \[/,
    );
    expect(await refused(good, "--type", "s7")).toContain("has requests and no answer that S7 would have");
    expect(await refused(file("asked.pcap", talk(502, [["client", modbus(1, 5)]])))).toContain("has requests and no answer");
    expect(await refused(file("empty.pcap", []))).toContain("has no conversation over TCP or UDP");
    expect(await refused(path.join(folder, "absent.pcap"))).toContain("absent.pcap does not exist");
    const opcua = file(
      "opcua.pcap",
      talk(4840, [
        ["client", "HELF\x20\0\0\0"],
        ["device", "ACKF"],
      ]),
    );
    expect(await refused(opcua)).toMatch(/10\.0\.0\.2:4840 speaks OPC UA, which cannot be replayed: .*collector simulate opcua/);
    const tls = file(
      "tls.pcap",
      talk(8443, [
        ["client", "\x16\x03\x01abc"],
        ["device", "\x16\x03\x03"],
      ]),
    );
    expect(await refused(tls)).toContain("speaks TLS, which cannot be replayed");
    const taken = net.createServer().listen(0, "127.0.0.1");
    await new Promise((ready) => taken.once("listening", ready));
    open.push(() => taken.close());
    const { port } = taken.address() as AddressInfo;
    expect(await refused(good, "--listen", `${port}`)).toContain(`127.0.0.1:${port} is taken by another program`);
  });

  it("names the package where it is missing, and where it is of another version", async () => {
    const io = { ...commandIo({}), addOn: () => undefined };
    await expect(replay(io, "x.pcap", {})).rejects.toThrow(
      "what reads captures is not installed: it is in the package collector-workbench (sudo apt install ./collector-workbench_*.deb)",
    );
    await expect(replay({ ...commandIo({}), version: "9.9.9" }, "x.pcap", {})).rejects.toThrow(
      "the package collector-workbench is of version 0, and the collector 9.9.9; install the same of both",
    );
  });

  it("takes a capture from stdin, and tells people where it listens, what of the capture was not read, and the sum at the end", async () => {
    const packets = talk(502, GOOD);
    const bytes = pcap(packets);
    const stop = new AbortController();
    let out = "";
    const keyboard = new PassThrough();
    keyboard.end(bytes.subarray(0, bytes.length - 20));
    const errors: string[] = [];
    const io = commandIo({ signal: stop.signal, keyboard, onOut: (text) => (out += text), onErr: (text) => errors.push(text) });
    const ended = replay(io, "-", { listen: "127.0.0.1:0", config: path.join(folder, "collector.yaml") });
    // The last packet is cut, with the answer: nothing can be served.
    await expect(ended).rejects.toThrow("the capture has requests and no answer");
    expect(errors.join("")).toContain("the capture: the file ends within a packet");

    const again = new PassThrough();
    again.end(bytes);
    const running = replay(commandIo({ signal: stop.signal, keyboard: again, onOut: (text) => (out += text) }), "-", {
      listen: "127.0.0.1:0",
      config: path.join(folder, "collector.yaml"),
    });
    await vi.waitFor(() => expect(out).toContain("listening on"), { timeout: 10_000 });
    const port = Number(/listening on 127\.0\.0\.1:(\d+) \(TCP\); Ctrl-C ends it/.exec(out)?.[1]);
    const one = await client(port);
    await one.ask(Buffer.concat([modbus(1, 77), modbus(2, 5)]), 11);
    stop.abort();
    expect(await running).toBe(0);
    expect(out.split("\n")).toEqual([
      "10.0.0.2:502, Modbus TCP: 1 different request, 1 answer",
      expect.stringContaining("listening on 127.0.0.1:"),
      expect.stringContaining("for a data source of the service: 127.0.0.1 is a loopback address"),
      "memory: 1 range that the capture reads; any part of it is served",
      `not in the capture: ${modbus(1, 77).toString("hex")}`,
      `  the nearest there is ${modbus(1, 5).toString("hex")} (other at 9)`,
      "1 connection, 2 requests: 1 answered, 0 silent as in the capture, 1 not in the capture",
      "",
    ]);
  });
});
