import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { AttributeIds, MessageSecurityMode, OPCUAClient, SecurityPolicy } from "node-opcua-client";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { plainLayout, plainReadout } from "../../src/buffer/testing/readouts.ts";
import type { SinkSpec } from "../../src/delivery/messages.ts";
import { type Context, silentLog } from "../../src/model/context.ts";
import type { SourceReport } from "../../src/model/report.ts";
import { textsOf } from "../../src/model/testing/warnings.ts";
import { createPki, type OpenPki } from "../../src/os/pki/pki.ts";
import { SINKS } from "../../src/sinks/index.ts";
import type { Sink, SinkBatch } from "../../src/sinks/sink.ts";
import { freePort } from "../support/free-port.ts";
import { checkEveryKind, failure, HOSTED, openSink, type Refusals } from "./sink-checks.ts";

const LAYOUT = plainLayout(3);
const REPORT = {
  uuid: LAYOUT.source.uuid,
  name: LAYOUT.source.name,
  status: { last_readout_at: null, configured_variables: 3, state: { type: "OK" } },
  error: null,
  next_retry_at: null,
  interval_ms: 1000,
  warnings: [],
  layout: LAYOUT,
} as unknown as SourceReport;
const batch = (number: number): SinkBatch => ({ id: `e-${number}`, layout: LAYOUT, readouts: [plainReadout(3, number)], backlog: false });

interface Harness extends Refusals {
  readonly details: object;
  /** What a client of it reads of the variables of LAYOUT. */
  read(port: number): Promise<readonly unknown[]>;
}

const HARNESSES: Readonly<Record<(typeof HOSTED)[number], Harness>> = {
  opcua: {
    details: { security_modes: ["None"], anonymous: true },
    settings: { listen: "127.0.0.1" },
    wrong: [
      ["port", { port: "4840" }],
      ["path", { path: "no slash" }],
      ["security_modes", { security_modes: [] }],
      ["security_policies", { security_policies: ["Rot13"] }],
      ["users", { users: [{ username: "" }] }],
    ],
    wrongSettings: [
      ["listen", "everywhere"],
      ["max_sessions", 0],
      ["max_monitored_items", 1],
      ["no_such_setting", 1],
    ],
    async read(port: number): Promise<readonly unknown[]> {
      const client = OPCUAClient.create({
        endpointMustExist: false,
        securityMode: MessageSecurityMode.None,
        securityPolicy: SecurityPolicy.None,
        connectionStrategy: { maxRetry: 0 },
      });
      await client.connect(`opc.tcp://127.0.0.1:${port}`);
      try {
        const session = await client.createSession();
        const nodes = LAYOUT.variables.map(({ uuid }) => ({ nodeId: `ns=1;s=${uuid}`, attributeId: AttributeIds.Value }));
        const values = await session.read(nodes);
        await session.close();
        return values.map(({ value, statusCode }) => (statusCode.isGood() ? value.value : statusCode.name));
      } finally {
        await client.disconnect();
      }
    },
  },
};

describe.each(HOSTED.map((type) => [type, HARNESSES[type]] as const))("the hosted sink %s", (type, harness) => {
  let folder: string;
  let pki: OpenPki;
  let port: number;
  const opened: Sink[] = [];

  const spec = (change: object = {}, settings: object = harness.settings): SinkSpec => ({
    uuid: randomUUID(),
    name: "sink",
    type,
    details: { type, port, ...harness.details, ...change },
    settings,
    secrets: {},
    publishIntervalUnit: "seconds",
  });
  const ctx = (change: Partial<Context> = {}): Context => ({ signal: new AbortController().signal, log: silentLog, pki, ...change });
  const open = async (change: Partial<Context> = {}, settings: object = harness.settings): Promise<Sink> => {
    const sink = await openSink(spec({}, settings), ctx(change));
    opened.push(sink);
    return sink;
  };
  beforeAll(async () => {
    folder = mkdtempSync(path.join(tmpdir(), "hosted-sink-"));
    pki = createPki({ dir: folder, installation: randomUUID() });
    port = await freePort();
  });
  afterEach(async () => {
    for (const sink of opened.splice(0)) await sink.close();
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  checkEveryKind(type, harness, { registry: SINKS, spec, ctx, open, batch });

  test("serves a batch once write has resolved, and the newest of several", async () => {
    const sink = await open();
    await sink.describe?.([REPORT], ctx());
    expect(await sink.write(batch(1), ctx())).toEqual({ refused: 0 });
    const values = plainReadout(3, 1).readings.map((reading) => (reading?.quality === "good" ? reading.value : undefined));
    expect(await harness.read(port)).toEqual(values);
    await Promise.all([2, 3, 4].map((number) => sink.write(batch(number), ctx())));
    expect(await harness.read(port)).toEqual(
      plainReadout(3, 4).readings.map((reading) => (reading?.quality === "good" ? reading.value : undefined)),
    );
  });

  test("opened again on the same port it takes the same batch", async () => {
    const first = await open();
    await first.close();
    const second = await open();
    await second.describe?.([REPORT], ctx());
    await second.write(batch(7), ctx());
    expect(await harness.read(port)).toHaveLength(3);
  });

  test("takes values before their source is described, and shows them after", async () => {
    const sink = await open();
    await sink.write(batch(5), ctx());
    await sink.describe?.([REPORT], ctx());
    expect(await harness.read(port)).toEqual(
      plainReadout(3, 5).readings.map((reading) => (reading?.quality === "good" ? reading.value : undefined)),
    );
  });

  test("says which port is in use, and by what to find who has it", async () => {
    const other = net.createServer();
    await new Promise<void>((done) => other.listen(port, "127.0.0.1", done));
    const error = await failure(open());
    await new Promise((done) => other.close(done));
    expect(error).toMatchObject({ reason: { type: "UNKNOWN" }, condition: "collector_host_trouble" });
    expect(error.message).toContain(`port ${port} of 127.0.0.1 is in use`);
  });

  test("does not listen where the policy does not let it, and says which line would", async () => {
    const error = await failure(open({ listenRefusal: (at) => `${at} is not among the addresses that policy.yaml opens (listen)` }));
    expect(error).toMatchObject({ reason: { type: "UNKNOWN" }, condition: "forbidden_by_policy" });
    expect(error.message).toContain("policy.yaml");
    const listenRefusal = (at: string): string | undefined => (at.startsWith("127.") ? undefined : "not open");
    const sink = await open({ listenRefusal }, {});
    expect(textsOf(sink.warnings).join()).toContain("policy.yaml");
    expect(await harness.read(port)).toHaveLength(3);
  });

  test("closed it frees the port and takes no descriptions", async () => {
    const sink = await open();
    await sink.close();
    await failure(sink.describe?.([], ctx()) ?? Promise.resolve());
    const other = net.createServer();
    await new Promise<void>((done, reject) => other.once("error", reject).listen(port, "127.0.0.1", done));
    await new Promise((done) => other.close(done));
  });
});
