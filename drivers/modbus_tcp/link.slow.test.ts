import { expect, it } from "vitest";
import { silentLog } from "../../src/model/context.ts";
import { parseDataType } from "../../src/model/value.ts";
import { fakeConnection } from "../../test/support/fake-connection.ts";
import type { Connection } from "../lib/connection.ts";
import { parseAddress } from "./address.ts";
import { FirstRequest } from "./first-request.ts";
import { linkModbus, tcpCarrier } from "./link.ts";
import { limitsOf, plan } from "./plan.ts";
import { settingsSchema } from "./settings.ts";

/** A connection whose peer answers each register with its number, in the next turn and the last request first. */
function answering(where: string): { readonly connection: Connection; readonly transactions: Set<number> } {
  let waiting: Buffer[] = [];
  const transactions = new Set<number>();
  const { connection, receive } = fakeConnection(where, (bytes) => {
    if (waiting.length === 0) setImmediate(answerAll);
    waiting.push(bytes);
    transactions.add(bytes.readUInt16BE(0));
  });
  const answerAll = () => {
    const requests = waiting.reverse();
    waiting = [];
    for (const request of requests)
      receive(Buffer.concat([request.subarray(0, 4), Buffer.of(0, 5), request.subarray(6, 8), Buffer.of(2), request.subarray(8, 10)]));
  };
  return { connection, transactions };
}

it("answers stay with their requests when the transaction ids begin again", async () => {
  const settings = settingsSchema.parse({});
  const requests = Array.from({ length: 997 }, (_, i) => {
    const [request] = plan([{ index: 0, ...parseAddress(`holding:${i}`, parseDataType("uint16"), settings) }], limitsOf(settings));
    if (!request) throw new Error("nothing planned");
    return request;
  });
  const { connection, transactions } = answering("plc:502");
  const { read } = linkModbus(tcpCarrier(connection, { log: silentLog }, new FirstRequest({}, false)), "tcp");
  const ctx = { signal: new AbortController().signal, log: silentLog, timeouts: { nameMs: 5000, connectMs: 5000, answerMs: 5000 } };
  const reads = 70_000;
  let wrong = 0;
  const lane = async (first: number) => {
    for (let i = first; i < reads; i += 16) {
      const request = requests[i % requests.length];
      const [reading] = request ? await read(request, ctx) : [];
      if (reading?.quality !== "good" || reading.value !== i % requests.length) wrong++;
    }
  };
  await Promise.all(Array.from({ length: 16 }, (_, first) => lane(first)));
  expect(wrong).toBe(0);
  expect(transactions.size).toBe(65_536);
});

it("transaction ids go on across the connections of a device, and each device has its own", async () => {
  const [request] = plan(
    [{ index: 0, ...parseAddress("holding:7", parseDataType("uint16"), settingsSchema.parse({})) }],
    limitsOf(settingsSchema.parse({})),
  );
  if (!request) throw new Error("nothing planned");
  const ctx = { signal: new AbortController().signal, log: silentLog, timeouts: { nameMs: 5000, connectMs: 5000, answerMs: 5000 } };
  const used = async (where: string) => {
    const { connection, transactions } = answering(where);
    const { read } = linkModbus(tcpCarrier(connection, { log: silentLog }, new FirstRequest({}, false)), "tcp");
    for (let i = 0; i < 3; i++) await read(request, ctx);
    return [...transactions];
  };
  expect(await used("gateway:502")).toEqual([1, 2, 3]);
  expect(await used("gateway:502")).toEqual([4, 5, 6]);
  expect(await used("gateway:503")).toEqual([1, 2, 3]);
});
