import { randomUUID } from "node:crypto";
import { connect } from "node:net";
import { expect, test } from "vitest";
import { createThrottle } from "../../lib/throttle.ts";
import { startTestServer } from "./testing.ts";

const fail = (throttle: ReturnType<typeof createThrottle>, address: string): number | undefined => {
  const wait = throttle.failed(address);
  wait?.done();
  return wait?.delayMs;
};

test("the first failures of an address cost nothing, each further one twice the one before up to five seconds", () => {
  const throttle = createThrottle(() => 0);
  const delays = Array.from({ length: 17 }, () => fail(throttle, "10.0.0.1"));
  expect(delays).toEqual([...Array(10).fill(0), 250, 500, 1000, 2000, 4000, 5000, 5000]);
  expect(fail(throttle, "10.0.0.2")).toBe(0);
});

test("a quiet address is forgotten; one network of IPv6 is one address", () => {
  let now = 0;
  const throttle = createThrottle(() => now);
  for (let n = 0; n < 12; n++) fail(throttle, `2001:db8:0:1::${n.toString(16)}`);
  expect(fail(throttle, "2001:db8:0:1:ffff::1")).toBe(1000);
  expect(fail(throttle, "2001:db8:0:2::1")).toBe(0);
  expect(fail(throttle, "::ffff:10.0.0.1")).toBe(0);
  now = 10 * 60_000 - 1;
  expect(fail(throttle, "2001:db8::1:0:0:0:1")).toBe(2000);
  now += 10 * 60_000;
  expect(fail(throttle, "2001:db8:0:1::1")).toBe(0);
});

test("only so many answers wait at once, and only so many addresses are remembered", () => {
  const throttle = createThrottle(() => 0);
  const waiting = Array.from({ length: 20 }, () => throttle.failed("10.0.0.1"));
  expect(waiting.every((wait) => wait !== undefined)).toBe(true);
  expect(throttle.failed("10.0.0.1")).toBeUndefined();
  expect(fail(throttle, "10.0.0.2")).toBe(0);
  waiting[0]?.done();
  expect(fail(throttle, "10.0.0.1")).toBe(5000);
  for (let n = 0; n < 1000; n++) fail(throttle, `host-${n}`);
  expect(fail(throttle, "10.0.0.2")).toBe(0);
});

test("keys that open nothing wait and are refused in the end; a good key of the same address is answered meanwhile", async () => {
  const api = await startTestServer();
  const wrong = () => api.send("GET", "/v2/sites", undefined, { authorization: randomUUID() });
  const answers = Array.from({ length: 40 }, wrong);
  expect((await api.send("GET", "/v2/sites")).status).toBe(200);
  const refused = await Promise.all(answers.map((answer) => answer.then(({ status, headers }) => [status, headers.get("retry-after")])));
  expect(new Set(refused.map(String))).toEqual(new Set(["401,", "429,5"]));
  expect(refused.filter(([status]) => status === 429).length).toBeLessThanOrEqual(10);
});

test("whoever hangs up while waiting leaves nothing behind", async () => {
  const api = await startTestServer();
  const port = Number(new URL(api.server.url).port);
  for (let n = 0; n < 30; n++)
    await new Promise<void>((resolve) => {
      const socket = connect(port, "127.0.0.1", () =>
        socket.write("GET /api/v2/sites HTTP/1.1\r\nHost: x\r\n\r\n", () => socket.destroy()),
      );
      socket.on("close", () => resolve()).on("error", () => {});
    });
  await api.server.close();
});
