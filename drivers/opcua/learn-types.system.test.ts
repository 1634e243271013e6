import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { codesOf, textsOf } from "../../src/model/testing/warnings.ts";
import {
  all,
  array,
  bytes,
  dataValue,
  expandedNode,
  extension,
  i32,
  i64,
  localized,
  node,
  qualified,
  str,
  ticks,
  u8,
  u32,
  variant,
  variantArray,
} from "../../test/support/opcua-wire/bytes.ts";
import { defineStructure, NOW, read, WireReader } from "../../test/support/opcua-wire/reader.ts";
import { reference, type WireServer } from "../../test/support/opcua-wire/server.ts";
import type { AnySession } from "../driver.ts";

const wire = new WireReader();
let server: WireServer;
/** By how much monotonic time is ahead of itself. */
let aheadMs = 0;
beforeEach(async () => {
  server = await wire.start();
  aheadMs = 0;
  const monotonic = performance.now.bind(performance);
  vi.spyOn(performance, "now").mockImplementation(() => monotonic() + aheadMs);
});
afterEach(async () => {
  vi.restoreAllMocks();
  await wire.end();
});

const BAD_TIMEOUT = 0x800a_0000;
const BAD_TOO_MANY_OPERATIONS = 0x8010_0000;
const BAD_ATTRIBUTE_ID_INVALID = 0x8035_0000;
const BYTES = '{"encoding":"ns=2;i=11","body":"AQAAAAIAAAA="}';
const PAIR = '{"A":1,"B":2}';

const mine = (body: Buffer): void => wire.put("ns=2;s=mine", variant(22, extension("ns=2;i=11", body)));
const pair = (first: string, second: string): void =>
  defineStructure(server, [
    [first, "i=6"],
    [second, "i=6"],
  ]);
const both = (session: AnySession) => read(session, "ns=2;s=mine", "ns=2;s=good");
const value = async (session: AnySession): Promise<unknown> => {
  const [reading, good] = await both(session);
  expect(good).toMatchObject({ value: 1.5 });
  return reading?.quality === "bad" ? reading.fault : reading?.value;
};
const definitionOf = (target: string, fields: readonly (readonly [name: string, type: string])[]): Buffer => {
  const described = fields.map(([name, type]) => all(str(name), localized(""), node(type), i32(-1), array([]), u32(0), u8(0)));
  return dataValue({ value: variant(22, extension("i=122", all(node(target), node("i=22"), u32(0), array(described)))) });
};

describe("types that are asked for once and believed for ever", () => {
  it("two fields that a download exchanged within one session are read by the new definition", async () => {
    pair("A", "B");
    mine(all(i32(1), i32(2)));
    const session = await wire.open();
    expect(await value(session)).toBe(PAIR);
    pair("B", "A");
    aheadMs += 31_000;
    await expect.poll(() => value(session)).toBe('{"B":1,"A":2}');
    expect(codesOf(session.warnings?.())).toContain("structures_read_again");
    expect(textsOf(session.warnings?.())).toContainEqual(
      expect.stringMatching(/changed the type ns=2;i=10: what was read of it between 20.*Z and 20/),
    );
    expect(server.connections).toBe(1);
  });

  it("a structure that a download gave one field more is read again", async () => {
    pair("A", "B");
    mine(all(i32(1), i32(2)));
    const session = await wire.open();
    expect(await value(session)).toBe(PAIR);
    defineStructure(server, [
      ["A", "i=6"],
      ["B", "i=6"],
      ["C", "i=6"],
    ]);
    mine(all(i32(1), i32(2), i32(3)));
    await expect.poll(() => value(session)).toBe('{"A":1,"B":2,"C":3}');
    expect(server.connections).toBe(1);
  });

  it("values that do not fit what the server says, now as before, stay a fault and are no storm of requests", async () => {
    pair("A", "B");
    mine(i32(1));
    const session = await wire.open();
    await expect.poll(() => value(session)).toBe("device_error");
    const asked = server.count("Browse");
    for (let i = 0; i < 5; i++) expect(await value(session)).toBe("device_error");
    expect(server.count("Browse")).toBe(asked);
  });

  const hiccups: readonly (readonly [string, () => void])[] = [
    ["BadTimeout to Browse", () => void server.answers.set("Browse", () => ({ fault: BAD_TIMEOUT }))],
    ["BadTooManyOperations to Browse", () => void server.answers.set("Browse", () => ({ fault: BAD_TOO_MANY_OPERATIONS }))],
    ["BadTimeout of the definition", () => void server.nodes.set("ns=2;i=10#23", dataValue({ status: BAD_TIMEOUT }))],
    ["BadTooManyOperations of the definition", () => void server.nodes.set("ns=2;i=10#23", dataValue({ status: BAD_TOO_MANY_OPERATIONS }))],
  ];
  it.each(hiccups)("a hiccup while types are asked for (%s) is a warning and asked again after 30 s", async (_, hiccup) => {
    pair("A", "B");
    mine(all(i32(1), i32(2)));
    hiccup();
    const session = await wire.open();
    for (let i = 0; i < 3; i++) expect(await value(session)).toBe("no_answer");
    expect(textsOf(session.warnings?.())).toEqual([
      expect.stringMatching(/what the structure ns=2;i=11 is .*(BadTimeout|BadTooManyOperations|even one question)/),
    ]);
    const asked = server.count("Browse");
    for (let i = 0; i < 3; i++) await value(session);
    expect(server.count("Browse")).toBe(asked);
    server.answers.clear();
    pair("A", "B");
    aheadMs += 31_000;
    await expect.poll(() => value(session)).toBe(PAIR);
    expect(textsOf(session.warnings?.())).toEqual([]);
  });

  it("a type without a definition is asked for once", async () => {
    pair("A", "B");
    server.nodes.set("ns=2;i=10#23", dataValue({ status: BAD_ATTRIBUTE_ID_INVALID }));
    mine(all(i32(1), i32(2)));
    const session = await wire.open();
    expect(await value(session)).toBe(BYTES);
    const asked = server.count("Browse");
    for (let i = 0; i < 3; i++) {
      aheadMs += 31_000;
      expect(await value(session)).toBe(BYTES);
    }
    // Looks at the run of the server go on; those at its models have found that there are none.
    expect(server.count("Browse")).toBeLessThanOrEqual(asked + 1);
  });

  it("a server before OPC UA 1.04 describes its structures in a type dictionary", async () => {
    const xml = `<?xml version="1.0"?><opc:TypeDictionary xmlns:opc="http://opcfoundation.org/BinarySchema/" xmlns:tns="urn:mine"
      TargetNamespace="urn:mine" DefaultByteOrder="LittleEndian"><opc:StructuredType Name="&quot;Mine&quot;" BaseType="ua:ExtensionObject">
      <opc:Field Name="A" TypeName="opc:Int32"/><opc:Field Name="B" TypeName="opc:Int32"/></opc:StructuredType></opc:TypeDictionary>`;
    pair("A", "B");
    server.nodes.set("ns=2;i=10#23", dataValue({ status: BAD_ATTRIBUTE_ID_INVALID }));
    server.references.set("ns=2;i=11", [reference(expandedNode("ns=2;i=50"), "Mine")]);
    server.references.set("ns=2;i=50 inverse", [reference(expandedNode("ns=2;i=51"), "Dictionary")]);
    server.nodes.set("ns=2;i=50", dataValue({ value: variant(12, str('"Mine"')) }));
    server.nodes.set("ns=2;i=51", dataValue({ value: variant(15, bytes(Buffer.from(xml))) }));
    mine(all(i32(1), i32(2)));
    const session = await wire.open();
    expect(await value(session)).toBe(PAIR);
    expect(await read(session, "ns=2;s=mine#B")).toMatchObject([{ quality: "good", value: 2, type: { scalar: "int32" } }]);
  });

  it("a look that fails costs no value of a type that is known", async () => {
    pair("A", "B");
    mine(all(i32(1), i32(2)));
    const session = await wire.open();
    expect(await value(session)).toBe(PAIR);
    server.answers.set("Browse", () => ({ fault: BAD_TIMEOUT }));
    aheadMs += 31_000;
    await expect
      .poll(async () => {
        expect(await value(session)).toBe(PAIR);
        return textsOf(session.warnings?.());
      })
      .toEqual([expect.stringContaining("it is read as before")]);
  });

  it("another version of a model forgets all definitions", async () => {
    pair("A", "B");
    mine(all(i32(1), i32(2)));
    const property = all(
      node("i=46"),
      u8(1),
      expandedNode("ns=2;i=31"),
      qualified(0, "NamespaceVersion"),
      localized(""),
      u32(2),
      node("i=68"),
    );
    server.references.set("i=11715", [reference(expandedNode("ns=2;i=30"), "urn:wire:plant")]);
    server.references.set("ns=2;i=30", [property]);
    const version = (words: string) => server.nodes.set("ns=2;i=31", dataValue({ value: variant(12, str(words)) }));
    version("1.0");
    const session = await wire.open();
    expect(await value(session)).toBe(PAIR);
    aheadMs += 31_000;
    await expect
      .poll(async () => (await value(session)) && server.asked.filter((service) => service === "Browse").length)
      .toBeGreaterThan(2);
    version("1.1");
    aheadMs += 31_000;
    await expect
      .poll(async () => {
        expect(["no_answer", PAIR]).toContain(await value(session));
        return textsOf(session.warnings?.());
      })
      .toContainEqual(expect.stringContaining("other versions of its models"));
    await expect.poll(() => value(session)).toBe(PAIR);
  });

  it.each([
    [
      "the list of namespaces",
      () => wire.put("i=2255", variantArray(12, ["http://opcfoundation.org/UA/", "urn:wire:server", "urn:wire:plant", "urn:new"].map(str))),
    ],
    ["the time at which the server began", () => wire.put("i=2257", variant(13, i64(ticks(NOW + 60_000))))],
  ])("a change of %s within a session ends it, so that the next looks everything up again", async (_, change) => {
    pair("A", "B");
    mine(all(i32(1), i32(2)));
    const session = await wire.open();
    expect(await value(session)).toBe(PAIR);
    change();
    aheadMs += 31_000;
    await expect
      .poll(async () => {
        await both(session).catch(() => {});
        return session.alive();
      })
      .toBe(false);
    pair("B", "A");
    expect(await read(await wire.open(), "ns=2;s=mine")).toMatchObject([{ value: '{"B":1,"A":2}' }]);
  });

  it("a new session looks at what is known before it uses it", async () => {
    pair("A", "B");
    mine(all(i32(1), i32(2)));
    const first = await wire.open();
    expect(await value(first)).toBe(PAIR);
    await first.close();
    pair("B", "A");
    expect(await value(await wire.open())).toBe('{"B":1,"A":2}');
  });
});

describe("a structure whose type takes long to learn", () => {
  /** One request after the other, each so many ms; a structure with so many others in it, each in the one before or all beside each other. */
  function slowServer(eachMs: number, count: number, isDeep: boolean): void {
    let busy = Promise.resolve();
    for (const service of ["Read", "Browse"] as const) {
      const usual = server.usual(service);
      server.answers.set(service, (request) => {
        const turn = busy.then(() => new Promise<void>((done) => setTimeout(done, eachMs)));
        busy = turn;
        return turn.then(() => usual(request));
      });
    }
    const typeOf = (i: number) => `ns=2;i=${1000 + i}`;
    server.references.set("ns=2;i=11 inverse", [reference(expandedNode("ns=2;i=10"), "Mine")]);
    const subtypes = Array.from({ length: count }, (_, i) => [`F${i}`, typeOf(i)] as const);
    server.nodes.set("ns=2;i=10#23", definitionOf("ns=2;i=11", isDeep ? subtypes.slice(0, 1) : subtypes));
    for (let i = 0; i < count; i++)
      server.nodes.set(`${typeOf(i)}#23`, definitionOf(typeOf(i), isDeep && i + 1 < count ? [["N", typeOf(i + 1)]] : [["N", "i=6"]]));
    mine(Buffer.concat(Array.from({ length: isDeep ? 1 : count }, () => i32(7))));
  }

  it("does not hold up its neighbours: 200 sub-types are asked for in batches", async () => {
    slowServer(15, 200, false);
    const session = await wire.open();
    const began = Date.now();
    const [structure, good] = await both(session);
    expect(good).toMatchObject({ value: 1.5 });
    expect(Date.now() - began).toBeLessThan(1500);
    expect(structure?.quality === "bad" ? structure.detail : "known").toMatch(/^known$|of \d+ answers so far/);
    await expect.poll(() => value(session), { timeout: 5000 }).toMatch(/"F199":\{"N":7\}/);
  });

  it("says of its variable alone what it waits for, learns beside the readouts, and keeps that over sessions", {
    timeout: 15_000,
  }, async () => {
    slowServer(60, 25, true);
    const session = await wire.open();
    const seen: string[] = [];
    await expect
      .poll(
        async () => {
          const began = Date.now();
          const [structure, good] = await both(session);
          expect(good).toMatchObject({ value: 1.5 });
          expect(Date.now() - began).toBeLessThan(3 * 1000);
          if (structure?.quality === "bad") seen.push(`${structure.fault}: ${structure.detail}`);
          return structure?.quality;
        },
        { timeout: 10_000, interval: 100 },
      )
      .toBe("good");
    expect(seen.length).toBeGreaterThan(1);
    expect(new Set(seen).size).toBeGreaterThan(1);
    for (const words of seen)
      expect(words).toMatch(/^no_answer: its structure \(ns=2;i=11\) is being learned from the server: \d+ of \d+ answers so far/);
    const reads = server.count("Read");
    const next = await wire.open();
    expect(await value(next)).toMatch(/^\{"F0":/);
    // Of the session itself, the values, and one look at all that is known.
    expect(server.count("Read") - reads).toBeLessThan(6);
  });

  it("is learned on by the next session where the collector closed the one before", async () => {
    slowServer(150, 1, false);
    const session = await wire.open();
    const reading = both(session);
    await expect.poll(() => server.count("Browse")).toBe(1);
    await session.close();
    await reading.catch(() => {});
    const next = await wire.open();
    await expect.poll(() => value(next), { timeout: 10_000 }).toBe('{"F0":{"N":7}}');
  });

  it("whose server gives no answer to such questions costs nothing else", async () => {
    mine(i32(1));
    server.answers.set("Browse", () => "silent");
    const session = await wire.open();
    for (let i = 0; i < 3; i++) expect(await value(session)).toBe("no_answer");
    expect(session.alive()).toBe(true);
  });
});
