import { AttributeIds } from "node-opcua-client";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { freePort } from "../../../test/support/free-port.ts";
import { plainLayout } from "../../buffer/testing/readouts.ts";
import { type Rig as DeliveryRig, startRig } from "../../delivery/testing/rig.ts";
import { policySchema } from "../../model/policy.ts";
import { userSecretName } from "../../model/sink-details.ts";
import { textsOf } from "../../model/testing/warnings.ts";
import { createRig, type Rig, reportOf, user } from "./testing/rig.ts";

/** Through store and delivery, as the collector runs it. */

let rig: Rig;
let delivery: DeliveryRig | undefined;
/** The place where the policy lets it listen. */
let opened = ["127."];
beforeAll(async () => {
  rig = await createRig();
  rig.server.trust(rig.client.own);
});
afterEach(async () => {
  await delivery?.stop();
  delivery = undefined;
  opened = ["127."];
});
afterAll(() => rig.end());

async function start(early = 0): Promise<{ readonly running: DeliveryRig; readonly url: string; readonly tell: () => void }> {
  const port = await freePort();
  const running = await startRig(
    {},
    { openPki: () => rig.server.pki, listenRefusal: (at) => (opened.some((address) => at.startsWith(address)) ? undefined : "closed") },
  );
  delivery = running;
  running.start();
  running.ask({
    type: "start",
    sink: {
      uuid: "opcua-1",
      name: "hosted",
      type: "opcua",
      details: { type: "opcua", port, users: [{ username: "op" }] },
      settings: {},
      secrets: { [userSecretName("op")]: "correct horse" },
      publishIntervalUnit: "seconds",
    },
  });
  if (early > 0) running.append(early);
  await expect.poll(() => running.report("opcua-1")?.state, { timeout: 20_000 }).toBe("OK");
  return { running, url: `opc.tcp://127.0.0.1:${port}`, tell: () => running.ask({ type: "sources", sources: [reportOf(layout)] }) };
}

const layout = plainLayout(4, { scalar: "uint32" }, "press-1");

test("what is read reaches a client, without a sink that keeps anything", async () => {
  const { running, url, tell } = await start();
  tell();
  const client = await rig.clientOf();
  await client.connect(url);
  const session = await client.createSession(user("op", "correct horse"));
  const nodeId = `ns=1;s=${layout.variables[0]?.uuid}`;
  const read = async () => (await session.read({ nodeId, attributeId: AttributeIds.Value })).value.value;
  running.append(1);
  await expect.poll(read).toBe(0);
  running.append(5);
  await expect.poll(read).toBe(5);
  await session.close();
  await client.disconnect();
});

test("what was read while the server was being opened is shown when it is open", async () => {
  const { url, tell } = await start(3);
  tell();
  const client = await rig.clientOf();
  await client.connect(url);
  const session = await client.createSession(user("op", "correct horse"));
  const nodeId = `ns=1;s=${layout.variables[0]?.uuid}`;
  await expect.poll(async () => (await session.read({ nodeId, attributeId: AttributeIds.Value })).value.value).toBe(2);
  await session.close();
  await client.disconnect();
});

test("a readout of 6.6 MB reaches a client, and one that no answer has room for is told", async () => {
  const { running, url } = await start();
  const texts = plainLayout(2, { scalar: "string" }, "scanner");
  running.ask({ type: "sources", sources: [reportOf(texts)] });
  const client = await rig.clientOf();
  await client.connect(url);
  const session = await client.createSession(user("op", "correct horse"));
  const read = async (place: number) => {
    const { statusCode, value } = await session.read({ nodeId: `ns=1;s=${texts.variables[place]?.uuid}`, attributeId: AttributeIds.Value });
    return [statusCode.name, value.value?.length];
  };
  const append = (length: number, ok: string) =>
    running.append(1, { source: "scanner", variables: 2, textsOf: () => ["x".repeat(length), ok] });
  append(6_600_000, "ok");
  await expect.poll(() => read(1)).toEqual(["Good", 2]);
  expect(await read(0)).toEqual(["Good", 6_600_000]);
  append(9_000_000, "fine");
  await expect.poll(() => read(1)).toEqual(["Good", 4]);
  expect(await read(0)).toEqual(["BadEncodingLimitsExceeded", undefined]);
  running.ask({ type: "sources", sources: [reportOf(texts)] });
  await expect.poll(() => textsOf(running.report("opcua-1")?.warnings).join("\n")).toMatch(/8\.6 MiB.*max_answer of the sink raises it/);
  await session.close();
  await client.disconnect();
});

test("the server listens where another policy lets it, and ends where none does", async () => {
  const { running } = await start();
  const changed = (...addresses: string[]): void => {
    opened = addresses;
    running.ask({ type: "policy", policy: policySchema.parse({}) });
  };
  const report = () => running.report("opcua-1");
  const isSeen = <T>(look: () => T) => expect.poll(look, { timeout: 20_000 });
  expect(textsOf(report()?.warnings).join()).toMatch(/only programs on this machine/);
  expect(report()?.endpoint).toMatch(/^127\.0\.0\.1:\d+$/);
  const { since } = report() ?? {};
  changed("127.0.0.");
  changed("127.", "0.0.0.0");
  await isSeen(() => [report()?.state, textsOf(report()?.warnings).join()]).toEqual(["OK", expect.not.stringMatching(/only programs/)]);
  expect(report()?.endpoint).toMatch(/^0\.0\.0\.0:\d+$/);
  expect(report()?.since).not.toBe(since);
  changed();
  await isSeen(() => report()?.error).toMatchObject({ condition: "forbidden_by_policy" });
  changed("127.");
  await isSeen(() => report()?.state).toBe("OK");
});

test("a refused client and a closed listen address stand in the sink's report", async () => {
  const { running, url, tell } = await start();
  const stranger = await rig.machine("stranger");
  const client = await rig.clientOf({ machine: stranger });
  await client.connect(url).catch(() => {});
  await client.disconnect();
  await expect
    .poll(
      () => {
        tell();
        return textsOf(running.report("opcua-1")?.warnings).join("\n");
      },
      { timeout: 5000 },
    )
    .toContain(`sudo collector pki trust ${stranger.own.thumbprint}`);
  expect(textsOf(running.report("opcua-1")?.warnings).join("\n")).toContain("policy.yaml");
});
