import { expect } from "vitest";
import { detailsProblem } from "../../../src/agent/details-problem.ts";
import { KEY } from "../../platforms/document-platform.ts";
import { aSink, aSource, COLLECTOR, type Consumer, type ConsumerTest, type ConsumerTests, MACHINE, sent } from "./support.ts";

const many = (count: number) => Array.from({ length: count }, (_, n) => aSource({ name: `press-${n}` }));

/** Lists of several pages, read to their end by the cursors that the platform gives. */
const pages: ConsumerTest = async ({ platform, desired }) => {
  platform.options = { pageSize: 3, emptyPages: 1 };
  platform.sources = many(8);
  platform.sinks = [aSink(), aSink({ name: "other" })];
  const { sources, sinks } = await desired();
  expect(sources.map(({ name }) => name)).toEqual(platform.sources.map(({ name }) => name));
  expect(sinks).toHaveLength(2);
  const asked = platform.asked.filter(({ path }) => path === "/v2/data-sources");
  expect(asked.map(({ query }) => query.has("cursor"))).toEqual([false, true, true, true, true, true]);
  // The platform takes a cursor only as it gave it, and with the other parameters unchanged.
  expect(new Set(asked.map(({ query }) => query.get("collector")))).toEqual(new Set([COLLECTOR]));
  expect(platform.violations).toEqual([]);
};

const everyRequest = async ({ platform, desired, run }: Consumer) => {
  platform.sources = many(60);
  await desired();
  await run("source", "list");
  await run("sink", "list");
  return platform.asked;
};

/** A refusal in the words of the API, with the field. */
const refusals: ConsumerTest = async ({ platform, run, pull }) => {
  const { code, err } = await run("source", "add", "press-9", "s7", "host=10.0.0.5", "--machine", MACHINE, "--note", "x");
  expect([code, err]).toEqual([0, ""]);
  platform.instead = ({ method }, response) =>
    method === "POST" &&
    Boolean(
      response.writeHead(422).end(JSON.stringify({ detail: [{ loc: ["body", "details", "host"], msg: "is taken", type: "x", ctx: {} }] })),
    );
  expect(await run("source", "add", "press-8", "s7", "host=10.0.0.5", "--machine", MACHINE)).toMatchObject({
    code: 2,
    err: expect.stringContaining("details.host: is taken"),
  });
  for (const status of [400, 402, 409, 418, 500, 503]) {
    platform.instead = (_, response) => Boolean(response.writeHead(status).end("not even JSON"));
    expect(await pull()).toMatchObject({ type: "failed", status, message: expect.stringContaining(`answered ${status}`) });
  }
};

/** Sections 1 and 4 to 9. */
export const OPERATION_TESTS: ConsumerTests = {
  async "1 experimental"({ platform, desired, client }) {
    platform.sources = many(1);
    platform.sinks = [aSink()];
    await desired();
    platform.instead = ({ path }, response) => path === "/v2/data-sinks" && Boolean(response.writeHead(410).end());
    platform.sources = many(2);
    const { sources, sinks } = await desired();
    expect([sources.length, sinks.length]).toEqual([2, 1]);
    expect(client.notes()[0]).toMatchObject({ code: "api_offers_less", text: expect.stringContaining("does not offer data sinks") });
  },
  async "4 authorization"(consumer) {
    const asked = await everyRequest(consumer);
    expect(new Set(asked.map(({ authorization }) => authorization))).toEqual(new Set([KEY]));
  },
  async "4.1 GET"(consumer) {
    const asked = await everyRequest(consumer);
    const lists = asked.filter(({ path }) => path === "/v2/data-sources");
    expect(new Set(lists.flatMap(({ query }) => [...query.keys()]))).toEqual(new Set(["collector", "cursor"]));
    expect(consumer.platform.violations).toEqual([]);
  },
  async "4.1 POST"(consumer) {
    await sent(
      consumer,
      "source",
      "add",
      "press-9",
      "fins",
      "host=10.0.0.5",
      "local_address=0.10.0",
      "remote_address=0.1.0",
      "--machine",
      MACHINE,
    );
    expect((await consumer.desired()).sources.map(({ name, type }) => [name, type])).toEqual([["press-9", "fins"]]);
  },
  async "4.2 GET"({ platform, desired }) {
    platform.sinks = [aSink(), aSink({ collector: MACHINE })];
    expect((await desired()).sinks.map(({ uuid }) => uuid)).toEqual([platform.sinks[0]?.["uuid"]]);
  },
  async "4.2 POST"(consumer) {
    expect(await sent(consumer, "sink", "add", "broker-9", "mqtt", "host=b", "topic=t")).toMatchObject({
      name: "broker-9",
      collector: COLLECTOR,
      details: { type: "mqtt", host: "b", topic: "t" },
    });
    expect((await consumer.desired()).sinks).toMatchObject([{ name: "broker-9", type: "mqtt" }]);
  },
  async "4.2 DELETE {uuid}"(consumer) {
    consumer.platform.sinks = [aSink()];
    expect((await consumer.desired()).sinks).toHaveLength(1);
    await sent(consumer, "sink", "rm", "broker");
    expect((await consumer.desired()).sinks).toEqual([]);
  },
  "4.2 PATCH {uuid}": changed,
  "4.2 rule 1": changed,
  "4.2 rule 2": changed,
  "4.2 rule 3": changed,
  async "4.2 rule 4"(consumer) {
    const { platform, write } = consumer;
    platform.sinks = [aSink({ name: "opc", type: "opcua", details: { type: "opcua", port: 4840, path: "/", users: [{ username: "a" }] } })];
    const users = [write("a.txt", "pa\n"), write("b.txt", "pb\n")];
    const body = await sent(consumer, "sink", "set", "opc", "--user", `a=${users[0]}`, "--user", `b=${users[1]}`);
    expect(body["details"]).toMatchObject({
      users: [
        { username: "a", password: "pa" },
        { username: "b", password: "pb" },
      ],
    });
  },
  "4.5 rule 1": pages,
  "4.5 rule 2": pages,
  "4.5 rule 3": pages,
  "4.5 rule 4": pages,
  "4.5 rule 5": pages,
  "4.5 rule 6": pages,
  async "5 rule 1"(consumer) {
    const [first] = await everyRequest(consumer);
    expect(first?.authorization).toBe(KEY);
  },
  async "5 rule 2"(consumer) {
    consumer.platform.options = { keyForm: "bearer" };
    const asked = await everyRequest(consumer);
    expect(asked.at(-1)?.authorization).toBe(`Bearer ${KEY}`);
    expect((await consumer.desired()).sources).toHaveLength(60);
  },
  async "5 rule 3"({ platform, pull, run }) {
    platform.instead = (_, response) => Boolean(response.writeHead(403).end(JSON.stringify({ detail: "read only" })));
    expect(await pull()).toMatchObject({ type: "failed", status: 403, message: expect.stringContaining("read only") });
    expect(await run("source", "list")).toMatchObject({ code: 2, err: expect.stringContaining("read only") });
  },
  "7 rule 1": refusals,
  async "7 rule 2"({ platform, desired }) {
    const status = {
      last_readout_at: null,
      configured_variables: 0,
      state: { type: "ERROR", reason: { type: "OF_NEXT_YEAR" }, error_at: "x" },
    };
    platform.sources = [aSource({ readout_status: status })];
    expect((await desired()).sources).toHaveLength(1);
  },
  "7 rule 3": refusals,
  async "8 filters"(consumer) {
    const asked = await everyRequest(consumer);
    for (const { query } of asked) expect(query.getAll("collector").length).toBeLessThanOrEqual(1);
    expect(consumer.platform.violations).toEqual([]);
  },
  async "8 data sink name"(consumer) {
    const name = "😀".repeat(200);
    consumer.platform.sinks = [aSink({ name })];
    expect((await consumer.desired()).sinks[0]?.name).toBe(name);
    expect((await consumer.run("sink", "add", `${name}x`, "mqtt", "host=b", "topic=t")).code).toBe(2);
  },
  async "8 odac port"() {
    const problem = (port: number) => detailsProblem({ type: "odac", details: { type: "odac", host: "h", port } });
    expect([problem(0), problem(65_535), problem(65_536), problem(-1)].map((one) => one === undefined)).toEqual([true, true, false, false]);
  },
  async "8 s7plus password"(consumer) {
    const add = (text: string) =>
      consumer.run(
        "source",
        "add",
        "plc",
        "s7plus",
        "host=h",
        "port=102",
        "--machine",
        MACHINE,
        "--password-file",
        consumer.write("pw", text),
      );
    expect(await add("\n")).toMatchObject({ code: 2, err: expect.stringContaining("is empty") });
    expect(await add("x\n")).toMatchObject({ code: 0, err: "" });
  },
  async "8 page size"({ platform, desired }) {
    platform.sources = many(120);
    for (const pageSize of [1, 7, 50, 1000]) {
      platform.options = { pageSize };
      expect((await desired()).sources).toHaveLength(120);
    }
  },
  async "9 rule 1"(consumer) {
    const asked = await everyRequest(consumer);
    for (const { path } of asked) expect(path).toMatch(/^\/(v2|ext\/v1)(\/|$)/);
  },
  async "9 rule 2"({ platform, desired }) {
    platform.sources = many(1);
    platform.sinks = [aSink(), aSink({ name: "next", type: "of_next_year", details: { type: "of_next_year" } })];
    expect((await desired()).sinks).toHaveLength(2);
    platform.instead = ({ path }, response) => path === "/v2/data-sinks" && Boolean(response.end(JSON.stringify({ sinks: [] })));
    platform.sources = many(3);
    const { sources, sinks } = await desired();
    expect([sources.length, sinks.length]).toEqual([3, 2]);
  },
  async "9 rule 3"({ platform, desired }) {
    const { last_readout_at: _, ...record } = aSource();
    platform.sources = [record];
    expect((await desired()).sources).toHaveLength(1);
  },
};

/** Only what was given is sent, and neither type nor collector. */
async function changed(consumer: Consumer): Promise<void> {
  consumer.platform.sinks = [aSink()];
  expect(await sent(consumer, "sink", "set", "broker", "topic=other")).toEqual({ details: { topic: "other" } });
  expect(await sent(consumer, "sink", "set", "broker", "--name", "renamed")).toEqual({ name: "renamed" });
  expect((await consumer.desired()).sinks).toMatchObject([{ name: "renamed", details: { host: "127.0.0.1", topic: "other" } }]);
}
