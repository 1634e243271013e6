import { once } from "node:events";
import net from "node:net";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { codesOf, textsOf } from "../../src/model/testing/warnings.ts";
import { connect, context, detailsOf } from "../../test/support/opcua.ts";
import { all, dataValue, expandedNode, extension, i32, text, u8, variant, variantArray } from "../../test/support/opcua-wire/bytes.ts";
import { NOW, read, WireReader } from "../../test/support/opcua-wire/reader.ts";
import { BAD_SERVICE_UNSUPPORTED, readsOf, reference, type WireServer } from "../../test/support/opcua-wire/server.ts";

const TOO_LARGE = 0x80b9_0000;
const TCP_TOO_LARGE = 0x8080_0000;
const wire = new WireReader();
let server: WireServer;
beforeEach(async () => {
  server = await wire.start();
});
afterEach(() => wire.end());

it("reads what the server has", async () => {
  expect(await read(await wire.open(), "ns=2;s=good", "ns=2;s=none")).toEqual([
    { quality: "good", value: 1.5, sourceTime: NOW, type: { scalar: "float64" } },
    { quality: "bad", fault: "not_found", detail: expect.stringContaining("BadNodeIdUnknown") },
  ]);
});

describe("an answer that the server gives up with an abort chunk", () => {
  it.each([0, 3])("keeps code and words, after %i chunks of it, and the channel goes on", async (chunks) => {
    const session = await wire.open();
    server.answers.set("Read", () => ({ abort: TCP_TOO_LARGE, words: "5 MB are more than 1 MB", chunks }));
    await expect(read(session, "ns=2;s=good", "i=2259")).rejects.toMatchObject({
      name: "FaultError",
      scope: "points",
      message: expect.stringMatching(/^BadTcpMessageTooLarge \(0x80800000\) to Read: .*"5 MB are more than 1 MB"/),
    });
    server.answers.delete("Read");
    expect(session.alive()).toBe(true);
    expect(await read(session, "ns=2;s=good")).toMatchObject([{ value: 1.5 }]);
  });

  it("is what the API is told where it is no matter of size", async () => {
    const session = await wire.open();
    server.answers.set("Read", () => ({ abort: 0x8002_0000, words: "PLC not loaded", chunks: 1 }));
    await expect(read(session, "ns=2;s=good")).rejects.toMatchObject({
      reason: { type: "OPC_UA_ERROR_RESPONSE", code: 0x8002_0000, name: "BadInternalError", reason: "PLC not loaded" },
    });
  });

  it("is named before there is a session", async () => {
    server.answers.set("GetEndpoints", () => ({ abort: 0x8002_0000, words: "no" }));
    await expect(wire.open()).rejects.toMatchObject({ reason: { type: "OPC_UA_ERROR_RESPONSE", code: 0x8002_0000, reason: "no" } });
  });
});

describe("an answer that is larger than what is taken", () => {
  it("is refused by itself: less is asked for in the same session", async () => {
    const first = await wire.open({ max_answer_bytes: 65_536 });
    const texts = Array.from({ length: 40 }, (_, i) => `ns=2;s=wide-${i}`);
    for (const id of texts) wire.put(id, text("x".repeat(5000)));
    await expect(read(first, ...texts)).rejects.toMatchObject({
      name: "FaultError",
      scope: "points",
      message: expect.stringContaining("max_answer_bytes"),
    });
    expect(first.alive()).toBe(true);
    expect(await read(first, ...texts.slice(0, 10))).toHaveLength(10);
    expect(server.connections).toBe(1);
  });

  it("ends the connection where it never ends", async () => {
    const session = await wire.open({ max_answer_bytes: 65_536 });
    server.answers.set("Read", () => ({ endless: 2_000_000 }));
    const said: unknown = await read(session, "ns=2;s=good").catch(String);
    expect(JSON.stringify(said)).toContain("max_answer_bytes");
    await expect.poll(() => session.alive()).toBe(false);
    server.answers.delete("Read");
    expect((await wire.open({ max_answer_bytes: 65_536 })).limits.maxPoints).toBe(500);
  });
});

describe("one value that cannot be taken apart", () => {
  const BROKEN: readonly (readonly [string, Buffer])[] = [
    ["of a built-in type that there is not", variant(40, i32(1))],
    ["with a length that cannot be", variant(12, i32(2_000_000_000))],
    ["with a node id of no form", variant(17, Buffer.of(9))],
    ["with more elements than bytes", all(u8(0x86), i32(1_000_000))],
    ["nested without end", Buffer.alloc(200, 24)],
  ];
  it.each(BROKEN)("%s is that variable's fault", async (_, value) => {
    wire.put("ns=2;s=broken", value);
    const session = await wire.open();
    // Nothing of such an answer is used; the agent asks for less until it is alone.
    await expect(read(session, "ns=2;s=good", "ns=2;s=broken", "i=2259")).rejects.toMatchObject({ name: "FaultError", scope: "points" });
    await expect(read(session, "ns=2;s=broken")).resolves.toMatchObject([
      { quality: "bad", fault: "device_error", detail: expect.stringContaining("cannot be taken apart") },
    ]);
    expect(session.alive()).toBe(true);
    expect(await read(session, "ns=2;s=good")).toMatchObject([{ value: 1.5 }]);
  });

  it("is read plainly where a subscription sends it, so that nobody keeps an old value", async () => {
    const settings = { read_mode: "subscribe", publishing_interval: 50 };
    const session = await wire.open(settings);
    wire.put("ns=2;s=broken", variant(40, i32(1)));
    const one = (id: string) => read(session, id).catch((error: unknown) => [error]);
    await expect
      .poll(() => one("ns=2;s=broken"))
      .toMatchObject([{ fault: "device_error", detail: expect.stringContaining("cannot be taken apart") }]);
    expect(await one("ns=2;s=good")).toMatchObject([{ value: 1.5 }]);
    expect(codesOf(session.warnings?.())).toContain("subscription_refused");
    expect(textsOf(session.warnings?.())).toContainEqual(expect.stringContaining("read without a subscription"));
  });
});

describe("paths", () => {
  it.each([
    ["by the URI of its namespace", expandedNode("s=good", { uri: "urn:wire:plant" }), { value: 1.5 }],
    [
      "by a URI that the server does not list",
      expandedNode("s=good", { uri: "urn:other" }),
      { fault: "not_found", detail: expect.stringContaining("urn:other") },
    ],
    [
      "on another server",
      expandedNode("ns=2;s=good", { server: 3 }),
      { fault: "not_found", detail: expect.stringContaining("another server") },
    ],
  ])("that lead to a node %s", async (_, target, expected) => {
    server.paths.set("Temp", target);
    expect(await read(await wire.open(), "/Objects/2:Temp", "ns=2;s=good")).toMatchObject([expected, { value: 1.5 }]);
  });
});

describe("a service that the server refuses", () => {
  const BUSY = 0x80ee_0000;
  const REFUSALS = [0x800b_0000, 0x801f_0000, 0x8040_0000, 0x8002_0000, 0x80e6_0000, BUSY];
  const hex = (code: number) => code.toString(16);

  it.each(REFUSALS)("TranslateBrowsePathsToNodeIds with %i costs the paths alone, in one request", async (fault) => {
    server.answers.set("TranslateBrowsePathsToNodeIds", () => ({ fault }));
    const session = await wire.open();
    const paths = ["/Objects/2:a", "/Objects/2:b", "/Objects/2:c", "/Objects/2:d"];
    const found = await read(session, ...paths).catch((error: unknown) => error);
    if (Array.isArray(found))
      expect(found).toMatchObject(paths.map(() => ({ quality: "bad", detail: expect.stringMatching(new RegExp(hex(fault), "i")) })));
    else expect(found).toMatchObject({ name: "FaultError" });
    expect(server.count("TranslateBrowsePathsToNodeIds")).toBe(1);
    expect(session.alive()).toBe(true);
    expect(await read(session, "ns=2;s=good")).toMatchObject([{ value: 1.5 }]);
  });

  it.each(REFUSALS)("RegisterNodes with %i is done without", async (fault) => {
    server.answers.set("RegisterNodes", () => ({ fault }));
    const session = await wire.open({ read_mode: "registered" });
    expect(await read(session, "ns=2;s=good")).toMatchObject([{ value: 1.5 }]);
    expect(codesOf(session.warnings?.())).toContain("nodes_not_registered");
    expect(textsOf(session.warnings?.())).toContainEqual(expect.stringContaining("registers no nodes"));
  });

  it.each(REFUSALS.filter((code) => code !== BUSY))("Browse with %i leaves structures as bytes", async (fault) => {
    server.answers.set("Browse", () => ({ fault }));
    wire.put("ns=2;s=mine", variant(22, extension("ns=2;i=11", i32(1))));
    const session = await wire.open();
    expect(await read(session, "ns=2;s=mine", "ns=2;s=good")).toMatchObject([
      { value: '{"encoding":"ns=2;i=11","body":"AQAAAA=="}' },
      { value: 1.5 },
    ]);
    expect(session.alive()).toBe(true);
  });

  it.each(["CreateSubscription", "CreateMonitoredItems"] as const)("%s is done without", async (service) => {
    server.answers.set(service, () => ({ fault: BAD_SERVICE_UNSUPPORTED }));
    const session = await wire.open({ read_mode: "subscribe" });
    expect(await read(session, "ns=2;s=good")).toMatchObject([{ value: 1.5 }]);
    expect(textsOf(session.warnings?.())).toContainEqual(expect.stringContaining("read without a subscription"));
  });

  it.each(["TranslateBrowsePathsToNodeIds", "RegisterNodes", "Browse"] as const)(
    "%s with an answer that cannot be taken apart is refused too",
    async (service) => {
      server.answers.set(service, () => u8(1));
      wire.put("ns=2;s=mine", variant(22, extension("ns=2;i=11", i32(1))));
      const session = await wire.open({ read_mode: "registered" });
      expect(await read(session, "/Objects/2:a", "ns=2;s=mine", "ns=2;s=good")).toMatchObject([
        { quality: "bad" },
        { quality: "good" },
        { value: 1.5 },
      ]);
      expect(session.alive()).toBe(true);
    },
  );
});

it("asks for half as many paths where the answer is too large, and remembers it", async () => {
  const sizes: number[] = [];
  const usual = server.usual("TranslateBrowsePathsToNodeIds");
  server.answers.set("TranslateBrowsePathsToNodeIds", (request) => {
    const at = request.body.at;
    const count = request.body.u32();
    request.body.at = at;
    sizes.push(count);
    return count > 3 ? { abort: TOO_LARGE, words: "", chunks: 1 } : usual(request);
  });
  const texts = Array.from({ length: 8 }, (_, i) => `/Objects/2:p${i}`);
  for (let i = 0; i < 8; i++) server.paths.set(`p${i}`, expandedNode("ns=2;s=good"));
  const session = await wire.open();
  expect(await read(session, ...texts)).toMatchObject(texts.map(() => ({ value: 1.5 })));
  expect(sizes).toEqual([8, 4, 2, 2, 2, 2]);
  sizes.length = 0;
  await read(session, ...texts);
  expect(sizes).toEqual([2, 2, 2, 2]);
});

it("lists nothing twice where folders lead back to themselves, and nothing of another server", async () => {
  const folder = (id: string, name: string) => reference(expandedNode(id), name, { isVariable: false });
  server.references.set("i=85", [folder("ns=2;s=A", "A"), reference(expandedNode("ns=2;s=far", { server: 2 }), "far")]);
  server.references.set("ns=2;s=A", [
    folder("i=85", "Objects"),
    folder("ns=2;s=A", "A"),
    folder("ns=2;s=B", "B"),
    reference(expandedNode("ns=2;s=good"), "good"),
  ]);
  server.references.set("ns=2;s=B", [folder("ns=2;s=A", "A"), reference(expandedNode("s=good", { uri: "urn:wire:plant" }), "good")]);
  const session = await wire.open();
  const found: string[] = [];
  for await (const { address } of session.discover?.(context()) ?? []) found.push(address);
  expect(found).toEqual(["nsu=urn:wire:plant;s=A", "nsu=urn:wire:plant;s=B", "nsu=urn:wire:plant;s=good"]);
});

it("is asked for what a Read holds, and nothing else", async () => {
  const keys: string[][] = [];
  const usual = server.usual("Read");
  server.answers.set("Read", (request) => {
    const at = request.body.at;
    keys.push(readsOf(request.body));
    request.body.at = at;
    return usual(request);
  });
  await read(await wire.open(), "ns=2;s=good", "i=2259");
  expect(keys.at(-1)).toEqual(["ns=2;s=good", "i=2259"]);
});

it("a server that does not run as it should: status says its state, and a person who probes it since when it runs", async () => {
  server.nodes.set("i=2259", dataValue({ value: variant(6, i32(1)) }));
  const session = await wire.open();
  expect(codesOf(session.warnings?.())).toEqual(["server_not_running"]);
  expect(session.about).toMatch(/^the server is Failed, and runs since 20\d\d-/);
  expect(await read(session, "ns=2;s=good")).toMatchObject([{ quality: "good" }]);
});

it("reads a node once for all variables that are parts of its value", async () => {
  wire.put("ns=2;s=list", variantArray(6, [10, 20, 30, 40].map(i32)));
  const keys: string[][] = [];
  const usual = server.usual("Read");
  server.answers.set("Read", (request) => {
    const at = request.body.at;
    keys.push(readsOf(request.body));
    request.body.at = at;
    return usual(request);
  });
  const texts = ["ns=2;s=list#[0]", "ns=2;s=good", "ns=2;s=list#[1:2]", "ns=2;s=list", "ns=2;s=list#[4]", "ns=2;s=good#a"];
  expect(await read(await wire.open(), ...texts)).toMatchObject([
    { quality: "good", value: 10, type: { scalar: "int32" } },
    { value: 1.5 },
    { value: [20, 30], type: { scalar: "int32", count: 2 } },
    { value: [10, 20, 30, 40] },
    { quality: "bad", fault: "out_of_range", detail: "the value has 4 elements, 0 to 3: there is no 4" },
    { quality: "bad", fault: "type_mismatch" },
  ]);
  expect(keys.at(-1)).toEqual(["ns=2;s=list", "ns=2;s=good"]);
});

it("is read at its second URL while the first is away, until that is back", async () => {
  const { port } = server;
  const url = `opc.tcp://127.0.0.1:${port}`;
  const away = detailsOf(port, { host: "127.0.0.9", endpoint_url: `opc.tcp://127.0.0.9:${port}` });
  const session = await connect(away, context(), { settings: { second_endpoint_url: url } });
  const first = net.createServer((socket) => socket.destroy());
  const monotonic = performance.now.bind(performance);
  const clock = vi.spyOn(performance, "now");
  try {
    expect(await read(session, "ns=2;s=good")).toMatchObject([{ value: 1.5 }]);
    expect(textsOf(session.warnings?.())).toEqual([
      expect.stringMatching(/^values are read at opc.tcp:.*, because .* is away: .*ECONNREFUSED/),
    ]);
    expect(codesOf(session.warnings?.())).toEqual(["second_endpoint_in_use"]);
    first.listen(port, "127.0.0.9");
    await once(first, "listening");
    clock.mockImplementation(() => monotonic() + 61_000);
    await expect
      .poll(async () => {
        if (session.alive()) await read(session, "ns=2;s=good");
        return session.alive();
      })
      .toBe(false);
  } finally {
    clock.mockRestore();
    await session.close();
    first.close();
  }
});
