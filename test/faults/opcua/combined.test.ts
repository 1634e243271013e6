import { afterEach, beforeEach, expect, it } from "vitest";
import { textsOf } from "../../../src/model/testing/warnings.ts";
import type { Reading } from "../../../src/model/value.ts";
import {
  all,
  dataValue,
  double,
  expandedNode,
  extension,
  i32,
  i64,
  text,
  ticks,
  u8,
  variant,
  variantArray,
} from "../../support/opcua-wire/bytes.ts";
import { defineEnumeration, defineStructure, NOW } from "../../support/opcua-wire/reader.ts";
import { BAD_SERVICE_UNSUPPORTED, readsOf, WireServer } from "../../support/opcua-wire/server.ts";
import { watchSource } from "./watched-source.ts";

const LARGE = 20_000;
const endings: (() => unknown)[] = [];
let server: WireServer;
beforeEach(async () => {
  server = await new WireServer().start();
  endings.push(() => server.close());
});
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

const NAMES = [
  "good",
  "broken",
  "nested",
  "structure",
  "matrix",
  "time",
  "large-1",
  "large-2",
  "large-3",
  "large-4",
  "abort",
  "last",
] as const;
const VARIABLES = [
  ...NAMES.map((name) => ({ name, address: `ns=2;s=${name}` })),
  { name: "path", address: "/Objects/2:Temp" },
  { name: "far path", address: "/Objects/2:Far" },
];
const LOCAL = { max_answer_bytes: 65_536 };

/** A device on which all is well; `began`: when it was started. */
function heal(began: number): void {
  server.answers.clear();
  for (const name of NAMES) server.nodes.set(`ns=2;s=${name}`, dataValue({ value: double(1.5), sourceTime: ticks(NOW) }));
  server.nodes.set("i=2257", dataValue({ value: variant(13, i64(ticks(began))) }));
  server.nodes.set("ns=2;s=structure", dataValue({ value: variant(22, extension("ns=2;i=11", all(u8(5), i32(42)))) }));
  server.nodes.set("ns=2;s=matrix", dataValue({ value: variantArray(6, [1, 2, 3, 4, 5, 6].map(i32), [2, 3]) }));
  for (let i = 1; i <= 4; i++) server.nodes.set(`ns=2;s=large-${i}`, dataValue({ value: text("small") }));
  defineStructure(server, [
    ["Mask", "ns=2;i=20"],
    ["Count", "i=6"],
  ]);
  defineEnumeration(server, "ns=2;i=20", "i=3");
  server.paths.set("Temp", expandedNode("s=good", { uri: "urn:wire:plant" }));
  server.paths.set("Far", expandedNode("ns=2;s=last"));
}

/** All of it at once, beside `good` and `last`. */
function breakAll(): void {
  server.nodes.set("ns=2;s=broken", dataValue({ value: variant(40, i32(1)) }));
  server.nodes.set("ns=2;s=nested", dataValue({ value: Buffer.alloc(200, 24) }));
  server.nodes.set("ns=2;s=structure", dataValue({ value: variant(22, extension("ns=2;i=11", all(u8(5), i32(42), u8(0)))) }));
  server.nodes.set("ns=2;s=matrix", dataValue({ value: variantArray(6, [1, 2, 3, 4, 5, 6].map(i32), [-2, -3]) }));
  server.nodes.set("ns=2;s=time", dataValue({ value: double(1.5), sourceTime: ticks(Date.UTC(12_000, 0)) }));
  for (let i = 1; i <= 4; i++) server.nodes.set(`ns=2;s=large-${i}`, dataValue({ value: text("x".repeat(LARGE)) }));
  server.paths.set("Far", expandedNode("ns=2;s=last", { server: 2 }));
  const usual = server.usual("Read");
  server.answers.set("Read", (request) => {
    const { at } = request.body;
    const isAborted = readsOf(request.body).includes("ns=2;s=abort");
    request.body.at = at;
    return isAborted ? { abort: 0x8080_0000, words: "no room", chunks: 2 } : usual(request);
  });
}

type Watched = Awaited<ReturnType<typeof watchSource>>;
const watch = (): Promise<Watched> => watchSource({ port: server.port, local: LOCAL, variables: VARIABLES, endings });
const last = ({ readouts }: Watched): readonly (Reading | undefined)[] => readouts.at(-1)?.readout.readings ?? [];
const allWell = (readings: readonly (Reading | undefined)[]) =>
  readings.length === VARIABLES.length && readings.every((reading) => reading?.quality === "good");

const BAD = (words: string) => ({ quality: "bad", detail: expect.stringContaining(words) });
const BROKEN: readonly object[] = [
  { value: 1.5, sourceTime: NOW },
  BAD("40 is not a built-in type"),
  BAD("levels inside each other"),
  BAD("1 bytes are left over"),
  BAD("[-2, -3]"),
  { quality: "good", value: 1.5 },
  ...Array.from({ length: 4 }, () => ({ value: "x".repeat(LARGE) })),
  BAD("no room"),
  { value: 1.5, sourceTime: NOW },
  { value: 1.5 },
  BAD("another server"),
];

it("reads what is good beside all that is wrong at once, and all of it when all is well again, as a fresh start does", {
  timeout: 60_000,
}, async () => {
  heal(NOW);
  breakAll();
  const watched = await watch();
  await expect.poll(() => last(watched), { timeout: 15_000 }).toMatchObject(BROKEN);
  // What was found is remembered: nothing good is asked for in vain again.
  const known = watched.states.length;
  const from = watched.readouts.length;
  await expect.poll(() => watched.readouts.length).toBeGreaterThan(from + 5);
  for (const { readout } of watched.readouts.slice(from)) expect(readout.readings).toMatchObject(BROKEN);
  expect(watched.states.slice(known)).not.toContain("ERROR");
  expect(server.connections).toBe(1);
  expect(textsOf(watched.report()?.warnings).filter((words) => words.includes("is not a time"))).toHaveLength(1);

  // While it runs: the values alone.
  heal(NOW);
  await expect
    .poll(
      () =>
        last(watched)
          .slice(0, -1)
          .every((reading) => reading?.quality === "good"),
      { timeout: 20_000 },
    )
    .toBe(true);
  // Started again: what paths lead to as well.
  const { port } = server;
  await server.close();
  await server.start(port);
  heal(NOW + 60_000);
  await expect.poll(() => allWell(last(watched)), { timeout: 20_000 }).toBe(true);
  const fresh = await watch();
  await expect.poll(() => allWell(last(fresh)), { timeout: 10_000 }).toBe(true);
  expect(last(watched)).toEqual(last(fresh));
  expect(watched.readouts.at(-1)?.layout.variables.map(({ name }) => name)).toEqual(VARIABLES.map(({ name }) => name));
  expect(last(fresh)[3]).toMatchObject({ value: '{"Mask":5,"Count":42}' });
});

it("reads on while the server refuses each service that can be done without", { timeout: 60_000 }, async () => {
  heal(NOW);
  for (const service of ["Browse", "TranslateBrowsePathsToNodeIds", "RegisterNodes", "CreateSubscription"] as const)
    server.answers.set(service, () => ({ fault: BAD_SERVICE_UNSUPPORTED }));
  for (const read_mode of ["plain", "registered", "subscribe"]) {
    const watched = await watchSource({ port: server.port, local: { ...LOCAL, read_mode }, variables: VARIABLES, endings });
    await expect.poll(watched.good, { timeout: 10_000 }).toBeGreaterThan(2);
    expect(last(watched).filter((reading) => reading?.quality === "bad")).toMatchObject([
      BAD("BadServiceUnsupported"),
      BAD("BadServiceUnsupported"),
    ]);
    expect(last(watched)[3]).toMatchObject({ value: '{"encoding":"ns=2;i=11","body":"BSoAAAA="}' });
    expect(watched.states).not.toContain("ERROR");
  }
});
