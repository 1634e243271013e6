import { expect, it } from "vitest";
import { codesOf, textsOf } from "../../src/model/testing/warnings.ts";
import { driverContext } from "../../test/support/driver-context.ts";
import { type PageExample, pageExamples } from "../../test/support/gateway-page.ts";
import { scriptedGateway } from "../../test/support/scripted-gateway.ts";
import type { DriverContext, Point } from "../driver.ts";
import driver from "./driver.ts";

const ctx = driverContext({ timeouts: { nameMs: 5000, connectMs: 5000, answerMs: 3000 } });
const examples = pageExamples().filter(({ played }) => played.includes("client"));

/** Answers with the page's lines, and keeps what was asked. */
async function play(example: PageExample) {
  const answers = example.lines.flatMap(({ from, line }) => (from === "gateway" ? [line] : []));
  return scriptedGateway((_, nth) => answers[nth]);
}

const said = ({ lines }: PageExample) => lines.flatMap(({ from, line }) => (from === "client" ? [line] : []));

const connect = (port: number, server_name: string, more: Partial<DriverContext> = {}) =>
  driver.connect(
    {
      details: driver.details.parse({
        type: "vendor_gateway",
        host: "127.0.0.1",
        port,
        protocol_details: { protocol: "OPC_DA", server_name },
      }),
      settings: driver.settings.parse({}),
      secrets: {},
    },
    { ...ctx, ...more },
  );

it("asks for a readout as the page says, byte for byte, and takes its answers", async () => {
  const [example] = examples;
  if (!example) throw new Error("the page has no example");
  const gateway = await play(example);
  const session = await connect(gateway.port, "Plant.OpcDa.1");
  const names = ["Press.Force", "press.energy", "Press.Oil.Level", "Press.Profile", "Press.Speed"];
  const points = names.map((name, index): Point => ({ index, ...driver.parseAddress(name, undefined, driver.settings.parse({})) }));
  const ready: Point[] = [];
  const refused: string[] = [];
  for await (const batch of session.prepare?.(points, ctx) ?? [])
    for (const one of batch)
      if ("address" in one) ready.push({ index: one.point.index, address: one.address, type: one.type });
      else refused.push(one.refusal.message);
  expect(refused).toEqual(['the gateway answers not_found, 0xC0040007 OPC_E_UNKNOWNITEMID: "there is no item Press.Speed"']);
  const [request, ...more] = driver.plan(ready, session.limits);
  expect(more).toEqual([]);
  if (!request) throw new Error("nothing is planned");
  const sourceTime = Date.UTC(2026, 10, 20, 9, 0, 0, 123);
  expect(await session.read(request, ctx)).toEqual([
    { quality: "good", value: 25.76, sourceTime, type: { scalar: "float64" } },
    { quality: "good", value: 1_795_165_200_123_000_000n, sourceTime, type: { scalar: "uint64" } },
    { quality: "uncertain", value: 74, sourceTime, type: { scalar: "int16" } },
    { quality: "good", value: [0, 12.5, 80, 12.5], sourceTime, type: { scalar: "float64", count: 4 } },
  ]);
  expect(codesOf(session.warnings?.())).toContain("quality_doubtful");
  expect(textsOf(session.warnings?.())).toEqual(["OPC quality 0x0058 (uncertain, sub-normal): Press.Oil.Level"]);
  await session.close();
  expect(gateway.lines).toEqual(said(example));
  await gateway.close();
});

it("names the servers that there are where one is unknown, asked for as the page says", async () => {
  const example = examples[1];
  if (!example) throw new Error("the page has no second example");
  const gateway = await play(example);
  const askedBefore: number[] = [];
  const loggingIn = () => void askedBefore.push(gateway.lines.length);
  await expect(connect(gateway.port, "Plant.OpcDa.2", { loggingIn })).rejects.toMatchObject({
    reason: { type: "VENDOR_GATEWAY_ERROR" },
    message: expect.stringMatching(/unknown_server, 0x800401F3 CO_E_CLASSSTRING: .*; the gateway has "Plant\.OpcDa\.1"$/),
  });
  expect(gateway.lines).toEqual(said(example));
  // What a probe calls the handshake is hello; the server behind the gateway is the log-in.
  expect(askedBefore).toEqual([1]);
  await gateway.close();
});
