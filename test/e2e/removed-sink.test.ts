import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { startModbusPlant } from "../../drivers/modbus_tcp/simulator.ts";
import { json, page, scripted } from "../../src/api/server/testing-scripted.ts";
import { startBroker, type TestBroker } from "../support/broker.ts";
import { startBuiltCollector } from "../support/built-collector.ts";
import { freePort } from "../support/free-port.ts";

const COLLECTOR = "2d7e3fbf-8c74-4b9a-9c65-3f2e4f3f6c33";
const SOURCE = "0b5c1f9e-6a52-4f7e-9a43-1f0c2f1d4a11";
const SINK = "1c6d2fae-7b63-4a8f-8b54-2f1d3f2e5b22";
const WITHIN = { timeout: 60_000, interval: 200 };
type Answer = (response: ServerResponse) => void;
const lists =
  (...records: readonly unknown[]): Answer =>
  (response) =>
    json(response, page([...records]));

/** Each value that a broker got, once: source, time and variable. */
const valuesOf = (brokers: readonly TestBroker[]): Set<string> =>
  new Set(
    brokers
      .flatMap(({ received }) => received.filter(({ topic }) => topic === "plant/values"))
      .flatMap(({ payload }) => (JSON.parse(payload) as { readouts: { ts: string; values?: object; errors?: object }[] }).readouts)
      .flatMap(({ ts, values = {}, errors = {} }) => [...Object.keys(values), ...Object.keys(errors)].map((name) => `${ts} ${name}`)),
  );

test("a sink that vanishes during an outage keeps its backlog over a restart and gets it when it returns, the ledger exact", async () => {
  const dir = await mkdtemp(path.join(tmpdir(), "removed-sink-"));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  const plant = await startModbusPlant({
    units: new Map([
      [
        1,
        {
          holding: new Map([
            [0, 7],
            [1, 8],
          ]),
        },
      ],
    ]),
  });
  onTestFinished(() => plant.close());
  const brokerPort = await freePort();
  const source = {
    uuid: SOURCE,
    type: "modbus_tcp",
    readout_limit: null,
    readout_interval: 1,
    name: "press-1",
    collector: COLLECTOR,
    manufacturer: null,
    device_model: null,
    note: null,
    machine: "3e8f40c0-9d85-4cab-8d76-405f50407d44",
    details: { type: "modbus_tcp", host: "127.0.0.1", port: plant.port, ephemeral_connections: false },
  };
  const sink = {
    uuid: SINK,
    type: "mqtt",
    name: "broker",
    collector: COLLECTOR,
    details: { type: "mqtt", host: "127.0.0.1", port: brokerPort, topic: "plant/values", publish_interval: 1 },
  };
  const { uuid: _, ...nameless } = sink;
  const answers: { sources: Answer; sinks: Answer } = { sources: lists(source), sinks: lists(sink) };
  const api = await scripted((_request, response, at) => {
    if (at.startsWith("/api/v2/data-sources")) answers.sources(response);
    else if (at.startsWith("/api/v2/data-sinks")) answers.sinks(response);
    else json(response, { detail: "no such path" }, 404);
  });
  await mkdir(path.join(dir, "variables"));
  await writeFile(path.join(dir, "variables", `${SOURCE}.csv`), "name;address;type\na;holding:0;uint16\nb;holding:1;uint16\n");
  await writeFile(path.join(dir, "key"), "key\n");
  const brokers = [await startBroker({ port: brokerPort })];
  onTestFinished(() => brokers.at(-1)?.stop());
  const start = () =>
    startBuiltCollector({
      dir,
      settings: {
        collector: COLLECTOR,
        api: { url: api.url, key_file: path.join(dir, "key"), poll_interval: "100ms" },
        sources: { [SOURCE]: { interval: "100ms" } },
      },
    });
  let collector = await start();
  onTestFinished(() => collector.kill());
  const ledger = async () => (await collector.status()).sinks[0]?.ledger;
  const removed = async () => (await collector.status()).buffer.removed_sinks?.[0];
  await expect.poll(async () => (await ledger())?.delivered, WITHIN).toBeGreaterThan(20);
  // Of what this API does not offer.
  const notes = (await collector.status()).config.warnings;

  await brokers[0]?.stop();
  await expect.poll(async () => (await ledger())?.pending, WITHIN).toBeGreaterThan(40);
  for (const answer of [
    lists(nameless),
    (response: ServerResponse) => json(response, {}, 500),
    lists(nameless, { ...nameless, uuid: "broker" }),
  ]) {
    answers.sinks = answer;
    await expect.poll(async () => JSON.stringify((await collector.status()).config), WITHIN).toMatch(/data-sinks|data sinks/);
    expect(await ledger()).toMatchObject({ dropped: {} });
    answers.sinks = lists(sink);
    await expect.poll(async () => (await collector.status()).config.warnings, WITHIN).toEqual(notes);
  }

  answers.sinks = lists();
  await expect.poll(async () => (await collector.status()).sinks, WITHIN).toEqual([]);
  await expect.poll(removed, WITHIN).toMatchObject({ uuid: SINK, pending: expect.any(Number), until: expect.any(String) });
  const kept = await removed();
  expect(kept?.pending).toBeGreaterThan(40);
  await collector.kill();
  collector = await start();
  await expect.poll(removed, WITHIN).toMatchObject({ uuid: SINK, pending: kept?.pending });
  expect(Math.abs(Date.parse((await removed())?.until ?? "") - Date.parse(kept?.until ?? ""))).toBeLessThan(30_000);

  answers.sinks = lists(sink);
  await expect.poll(async () => (await ledger())?.pending, WITHIN).toBeGreaterThan((kept?.pending ?? 0) + 20);
  brokers.push(await startBroker({ port: brokerPort }));
  answers.sources = lists();
  await expect.poll(async () => (await collector.status()).sources, WITHIN).toEqual([]);
  await expect.poll(async () => (await ledger())?.pending, WITHIN).toBe(0);
  const end = await ledger();
  expect(end).toMatchObject({ accepted: end?.delivered, dropped: {} });
  expect(valuesOf(brokers).size).toBe(end?.accepted);
  expect((await collector.status()).buffer.removed_sinks).toEqual([]);
}, 240_000);
