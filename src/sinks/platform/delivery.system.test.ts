import type { ServerResponse } from "node:http";
import { expect, onTestFinished, test } from "vitest";
import { EXTENSION, KEY, keyFolder, type Posted, scriptedPlatform, taken } from "../../../test/support/scripted-platform.ts";
import { json } from "../../api/server/testing-scripted.ts";
import type { SinkSpec } from "../../delivery/messages.ts";
import { startRig } from "../../delivery/testing/rig.ts";

/** The sink as the delivery runs it, with a buffer behind it. */
async function rigOf(...[answer, probe]: Parameters<typeof scriptedPlatform>) {
  const far = await scriptedPlatform(answer, probe);
  const { keyFile } = await keyFolder();
  const rig = await startRig();
  onTestFinished(() => rig.stop());
  const spec: SinkSpec = {
    uuid: "sink-1",
    name: "platform",
    type: "platform",
    details: { type: "platform", publish_interval: 1000, api: { url: far.url, keyFile, insecure: false, embedded: false } },
    settings: {},
    secrets: {},
    publishIntervalUnit: "milliseconds",
  };
  rig.start(spec);
  return { far, rig };
}

const numbersOf = (posted: readonly Posted[]): readonly unknown[] =>
  posted.flatMap(({ values }) => values.filter(({ variable }) => variable === "variable-0").map(({ value }) => value));

test("makes one request for each data source and publish interval", async () => {
  const { far, rig } = await rigOf(taken);
  await expect.poll(() => rig.report()?.state, { timeout: 5000 }).toBe("OK");
  // A readout each 100 ms: ten of them lie in one publish interval.
  const timeOf = (number: number) => 1_800_000_000_000 + Math.floor(number / 2) * 100;
  for (let i = 0; i < 30; i++) {
    rig.append(1, { source: "press-1", timeOf });
    rig.append(1, { source: "oven-2", timeOf });
  }
  await expect.poll(() => rig.sink(), { timeout: 10_000 }).toMatchObject({ delivered: 240, pending: 0, dropped: {} });
  const shape = far.posted.map(({ data_source, values }) => `${data_source} ${values[0]?.time} ${values.length}`).sort();
  expect(shape).toEqual(
    ["source-oven-2", "source-press-1"].flatMap((source) => [0, 1, 2].map((s) => `${source} 2027-01-15T08:00:0${s}.000Z 40`)),
  );
});

test("an API without the extension keeps the values waiting: said once, asked again", async () => {
  const { far, rig } = await rigOf(taken, (response) => json(response, { detail: "no such path" }, 404));
  rig.append(5);
  await expect.poll(() => rig.report()?.state, { timeout: 5000 }).toBe("ERROR");
  const report = rig.report();
  expect(report?.error?.detail).toMatch(/the API does not offer to take values .*a data sink of the type mqtt or opcua instead/);
  await expect.poll(() => far.requests.length, { timeout: 10_000 }).toBeGreaterThan(2);
  expect(new Set(far.requests)).toEqual(new Set(["GET /api/ext/v1"]));
  expect(rig.told.filter((m) => m.type === "log" && m.level === "warn")).toHaveLength(1);
  expect(rig.sink()).toMatchObject({ accepted: 20, pending: 20, dropped: {} });
  expect(JSON.stringify(rig.told)).not.toContain(KEY);
});

test.each([404, 403])(
  "an API that denies everything (%s) for some seconds gets all values soon after",
  async (status) => {
    let isDenied = true;
    const denied = (response: ServerResponse) => json(response, { detail: "no such path" }, status);
    const { far, rig } = await rigOf(
      (response, posted, bytes) => (isDenied ? denied(response) : taken(response, posted, bytes)),
      (response) => (isDenied ? denied(response) : json(response, EXTENSION)),
    );
    rig.append(5);
    await expect.poll(() => far.requests.length, { timeout: 10_000 }).toBeGreaterThan(2);
    isDenied = false;
    await expect.poll(() => rig.sink(), { timeout: 10_000 }).toMatchObject({ delivered: 20, pending: 0, dropped: {} });
  },
  30_000,
);

test("an API that is overloaded is left alone for as long as it asks, and then gets everything once", async () => {
  const at: number[] = [];
  const held: Posted[] = [];
  const { rig } = await rigOf((response, posted, bytes) => {
    at.push(performance.now());
    // What is under way beside the first one comes with it.
    if (performance.now() - (at[0] ?? 0) < 500) response.writeHead(429, { "retry-after": "3" }).end();
    else {
      held.push(posted);
      taken(response, posted, bytes);
    }
  });
  rig.append(10);
  await expect.poll(() => rig.sink(), { timeout: 15_000 }).toMatchObject({ delivered: 40, pending: 0, dropped: {} });
  const next = at.find((ms) => ms - (at[0] ?? 0) >= 500) ?? 0;
  expect(next - (at[0] ?? 0)).toBeGreaterThanOrEqual(2990);
  expect(numbersOf(held)).toEqual(Array.from({ length: 10 }, (_, n) => n));
}, 30_000);

test("an API that fails and answers only half takes everything in the end; what it had taken keeps its identifier", async () => {
  const seen = new Map<string, string>();
  const known = new Set<string>();
  const tries = new Map<string, number>();
  const { rig } = await rigOf((response, posted) => {
    const { id, values } = posted;
    const content = JSON.stringify(values);
    // An identifier never stands for anything else.
    if ((seen.get(id) ?? content) !== content) return json(response, { detail: "another content under this id" }, 500);
    seen.set(id, content);
    const before = tries.get(id) ?? 0;
    tries.set(id, before + 1);
    switch (before) {
      case 0:
        return json(response, { detail: "the disk is busy" }, 503);
      case 1:
        // Taken, and the answer is lost on the way.
        known.add(id);
        return void response.destroy();
      case 2:
        known.add(id);
        return void response.writeHead(200, { "content-type": "application/json" }).end('{"accepted":');
      default: {
        const duplicate = known.has(id);
        known.add(id);
        return json(response, { accepted: duplicate ? 0 : values.length, duplicate });
      }
    }
  });
  rig.append(4);
  await expect.poll(() => rig.sink(), { timeout: 150_000 }).toMatchObject({ accepted: 16, delivered: 16, pending: 0, dropped: {} });
  const once = [...seen].filter(([id]) => known.has(id)).map(([, content]) => JSON.parse(content) as Posted["values"]);
  const numbers = numbersOf(once.map((values) => ({ id: "", data_source: "", values })));
  expect([...new Set(numbers)].sort()).toEqual([0, 1, 2, 3]);
}, 180_000);

test("values that the API refuses are counted as refused, with its words in the sink's state", async () => {
  const { rig } = await rigOf((response) =>
    json(response, { detail: [{ loc: ["body", "data_source"], msg: "there is no such data source for this key", type: "x" }] }, 422),
  );
  rig.append(3);
  await expect
    .poll(() => rig.sink(), { timeout: 10_000 })
    .toMatchObject({ accepted: 12, delivered: 0, pending: 0, dropped: { refused: 12 } });
  await expect
    .poll(() => rig.report())
    .toMatchObject({
      state: "ERROR",
      error: { detail: expect.stringContaining("data_source: there is no such data source for this key") },
    });
});
