import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { startSocksProxy } from "../../../test/support/socks-proxy.ts";
import { permitOf } from "../../lib/policy.ts";
import { type Context, silentLog } from "../../model/context.ts";
import { policySchema } from "../../model/policy.ts";
import type { ReasonError } from "../../model/reason.ts";
import { dialThrough } from "./tunnel.ts";

const PASSWORD = "canary-proxy-password";
const undo: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

/** A proxy whose answers a test gives byte by byte, and all that it was sent. */
async function start(onData: (said: Buffer, socket: Socket) => void) {
  const sockets = new Set<Socket>();
  const said: Buffer[] = [];
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {}).on("close", () => sockets.delete(socket));
    socket.on("data", (bytes: Buffer) => {
      said.push(bytes);
      onData(Buffer.concat(said), socket);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  undo.push(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((done) => server.close(done));
  });
  const address = server.address();
  return {
    port: address !== null && typeof address === "object" ? address.port : 0,
    said: () => Buffer.concat(said),
    open: () => sockets.size,
  };
}

interface To {
  readonly protocol?: "http" | "socks5";
  readonly user?: string | undefined;
  readonly host?: string;
  readonly timeoutMs?: number;
  readonly ctx?: Partial<Context>;
}
async function through(
  port: number,
  { protocol = "http", user, host = "broker.example", timeoutMs = 1000, ctx = {} }: To = {},
): Promise<Socket> {
  const proxy = { protocol, host: "127.0.0.1", port, user };
  const password = user === undefined ? undefined : PASSWORD;
  const socket = await dialThrough(
    { proxy, password, host, port: 8883, timeoutMs },
    { signal: new AbortController().signal, log: silentLog, ...ctx },
  );
  undo.push(async () => socket.destroy());
  return socket;
}
const failure = async (work: Promise<unknown>): Promise<ReasonError> => {
  const error: ReasonError = await work.then(
    () => Promise.reject(new Error("it was opened")),
    (thrown: ReasonError) => thrown,
  );
  expect(JSON.stringify([error.message, error.nextStep, error.stack])).not.toContain("canary");
  return error;
};

const OPENED = "HTTP/1.1 200 Connection established\r\nContent-Length: 5\r\nX: y\r\n\r\n";
const isWhole = (said: Buffer): boolean => said.includes("\r\n\r\n");

describe("HTTP CONNECT", () => {
  test("sends the request as it has to be, and then the bytes of both sides", async () => {
    const proxy = await start((said, socket) => isWhole(said) && socket.write(said.includes("hello") ? "there" : OPENED));
    const socket = await through(proxy.port, { user: "line-3", host: "fd00::7" });
    expect(proxy.said().toString().split("\r\n")).toEqual([
      "CONNECT [fd00::7]:8883 HTTP/1.1",
      "Host: [fd00::7]:8883",
      `Proxy-Authorization: Basic ${Buffer.from(`line-3:${PASSWORD}`).toString("base64")}`,
      "",
      "",
    ]);
    socket.write("hello");
    const [answer] = (await once(socket, "data")) as [Buffer];
    expect(answer.toString()).toBe("there");
  });

  test.each([
    [407, "", undefined, "UNKNOWN", /407 Proxy Authentication Required: it wants a user; name it in proxy/],
    [407, 'Proxy-Authenticate: Basic realm="x"\r\n', "line-3", "UNKNOWN", /it does not accept the user or its password/],
    [
      407,
      "Proxy-Authenticate: Negotiate\r\nProxy-Authenticate: NTLM\r\n",
      "line-3",
      "UNKNOWN",
      /it wants a log-in by negotiate or ntlm, which is not spoken/,
    ],
    [403, "", undefined, "UNKNOWN", /403 Forbidden: it does not let this collector to this broker/],
    [502, "", undefined, "UNKNOWN", /502 Bad Gateway: it cannot reach the broker/],
    [503, "", undefined, "UNKNOWN", /503 Service Unavailable: it is not ready/],
    [504, "", undefined, "TIMEOUT", /504 Gateway Timeout: the broker did not answer the proxy/],
    [302, "Location: http://evil.example\r\n", undefined, "UNKNOWN", /302 Found: it does not open the way/],
    [101, "", undefined, "UNKNOWN", /does not answer a CONNECT request as HTTP does/],
  ])("answered with %i %j is told, and the connection is closed", async (status, headers, user, type, words) => {
    const proxy = await start((said, socket) => isWhole(said) && socket.write(`HTTP/1.1 ${status} ${PASSWORD}\r\n${headers}\r\n`));
    const { reason, condition, message } = await failure(through(proxy.port, { user }));
    expect([reason, condition, message]).toEqual([{ type }, "proxy_fails", expect.stringMatching(words)]);
    expect(message).toContain(`the proxy http://127.0.0.1:${proxy.port}: `);
    await expect.poll(() => proxy.open()).toBe(0);
  });
});

describe("SOCKS5", () => {
  test.each([
    ["broker.example", Buffer.from("\u0003\u000ebroker.example")],
    ["10.1.2.3", Buffer.from([1, 10, 1, 2, 3])],
    ["fd00::1:7", Buffer.from([4, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 7])],
    ["::ffff:10.1.2.3", Buffer.from([4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 1, 2, 3])],
  ])("asks for %s as it is", async (host, address) => {
    const proxy = await start((said, socket) => {
      if (said.length === 3) socket.write(Buffer.from([5, 0]));
      else if (said.length === 3 + 3 + address.length + 2) socket.write(Buffer.from([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]));
    });
    await through(proxy.port, { protocol: "socks5", host });
    expect(proxy.said()).toEqual(Buffer.concat([Buffer.from([5, 1, 0, 5, 1, 0]), address, Buffer.from([0x22, 0xb3])]));
  });

  test("gives user and password only to a proxy that wants them", async () => {
    const far = await start((said, socket) => void (said.length > 0 && socket.write("there")));
    const proxy = await startSocksProxy(far.port, { name: "line-3", password: PASSWORD });
    undo.push(() => proxy.stop());
    const socket = await through(proxy.port, { protocol: "socks5", user: "line-3" });
    socket.write("hello");
    expect(String((await once(socket, "data"))[0])).toBe("there");
    expect([proxy.asked, proxy.credentials]).toEqual([["broker.example:8883"], [`line-3:${PASSWORD}`]]);
    expect(await failure(through(proxy.port, { protocol: "socks5", user: "other" }))).toMatchObject({
      condition: "proxy_fails",
      message: expect.stringMatching(/does not accept the user or its password/),
    });
    expect((await failure(through(proxy.port, { protocol: "socks5" }))).message).toMatch(/it wants a user; name it in proxy/);
    const open = await startSocksProxy(far.port);
    undo.push(() => open.stop());
    await through(open.port, { protocol: "socks5", user: "line-3" });
    expect(open.credentials).toEqual([]);
  });

  test.each([
    [1, "UNKNOWN", /general SOCKS server failure/],
    [2, "UNKNOWN", /not allowed by ruleset/],
    [3, "NETWORK_UNREACHABLE", /network unreachable/],
    [4, "NO_ROUTE_TO_HOST", /host unreachable/],
    [5, "CONNECTION_REFUSED", /connection refused/],
    [6, "TIMEOUT", /TTL expired/],
    [7, "UNKNOWN", /command not supported/],
    [8, "UNKNOWN", /address type not supported/],
    [9, "UNKNOWN", /a code that SOCKS5 does not have/],
  ])("answered with code %i says its name", async (code, type, words) => {
    const proxy = await start((said, socket) => socket.write(Buffer.from(said.length === 3 ? [5, 0] : [5, code, 0, 1, 0, 0, 0, 0, 0, 0])));
    const { reason, condition, message } = await failure(through(proxy.port, { protocol: "socks5" }));
    expect([reason, condition, message]).toEqual([{ type }, "proxy_fails", expect.stringMatching(words)]);
    expect(message).toContain(`it does not connect to broker.example:8883: `);
    await expect.poll(() => proxy.open()).toBe(0);
  });

  test.each([
    [[4, 0], /as SOCKS5 does/],
    [[5, 1], /chooses the log-in 1/],
    [[5, 2], /chooses the log-in 2/],
    [[5, 0xff], /it wants a user/],
  ])("begun with %j is told", async (bytes, words) => {
    const proxy = await start((_said, socket) => socket.write(Buffer.from(bytes)));
    expect(await failure(through(proxy.port, { protocol: "socks5" }))).toMatchObject({
      condition: "proxy_fails",
      message: expect.stringMatching(words),
    });
  });
});

describe("a proxy that misbehaves", () => {
  const SOCKS_ANSWER = Buffer.from([5, 2, 1, 0, 5, 0, 0, 3, 4, 1, 2, 3, 4, 0, 80]);
  /** How much of the answer may come after so much was said. */
  const socksBounds = (said: number): number =>
    said < 4 ? 0 : said < 4 + 3 + 6 + PASSWORD.length ? 2 : said < 34 + PASSWORD.length ? 4 : SOCKS_ANSWER.length;
  const scripts = [
    { protocol: "http" as const, answer: Buffer.from(OPENED), bound: (said: Buffer) => (isWhole(said) ? OPENED.length : 0) },
    { protocol: "socks5" as const, answer: SOCKS_ANSWER, bound: (said: Buffer) => socksBounds(said.length) },
  ];

  test.each(scripts)("$protocol: an answer that ends at any byte is a failure at once", async ({ protocol, answer, bound }) => {
    for (let cut = 0; cut < answer.length; cut++) {
      let sent = 0;
      const proxy = await start((said, socket) => {
        const until = Math.min(cut, bound(said));
        if (until > sent) socket.write(answer.subarray(sent, until));
        sent = Math.max(sent, until);
        if (bound(said) > cut || (bound(said) === cut && cut === answer.length)) socket.end();
      });
      const beganMs = performance.now();
      const error = await failure(through(proxy.port, { protocol, user: "line-3" }));
      expect([cut, error.condition, error.reason.type]).toEqual([cut, "proxy_fails", "CONNECTION_CLOSED"]);
      expect(performance.now() - beganMs).toBeLessThan(900);
      await expect.poll(() => proxy.open()).toBe(0);
    }
  });

  test.each(scripts)("$protocol: an answer that comes byte by byte opens", async ({ protocol, answer, bound }) => {
    let sent = 0;
    let allowed = 0;
    const next = (socket: Socket): void => {
      if (sent >= allowed) return;
      socket.write(answer.subarray(sent, ++sent), () => setImmediate(next, socket));
    };
    const proxy = await start((said, socket) => {
      allowed = bound(said);
      next(socket);
    });
    await through(proxy.port, { protocol, user: "line-3" });
    expect(sent).toBe(answer.length);
  });

  test.each<["http" | "socks5", string, string | number[], string, RegExp]>([
    ["http", "says nothing", "", "TIMEOUT", /did not open the way to broker\.example:8883 within 100 ms/],
    ["socks5", "says nothing", "", "TIMEOUT", /did not open the way/],
    ["http", "speaks something else", "SSH-2.0-x\r\n", "UNKNOWN", /does not begin with HTTP\/1\.; is it a proxy of another kind/],
    ["socks5", "speaks something else", "HTTP/1.1 400 Bad\r\n\r\n", "UNKNOWN", /as SOCKS5 does; is it a proxy of another kind/],
    ["http", "never ends its head", `HTTP/1.1 200 OK\r\n${"x: y\r\n".repeat(4000)}`, "UNKNOWN", /longer than 16384 bytes/],
    ["http", "sends what nobody asked for", `${OPENED}early`, "UNKNOWN", /sends bytes of the server/],
  ])("%s: one that %s", async (protocol, _what, bytes, type, words) => {
    const proxy = await start((_said, socket) => socket.write(bytes as string));
    const { condition, reason, message } = await failure(through(proxy.port, { protocol, timeoutMs: 100 }));
    expect([condition, reason, message]).toEqual(["proxy_fails", { type }, expect.stringMatching(words)]);
    await expect.poll(() => proxy.open()).toBe(0);
  });

  test("that is not there is named with the reason of the network", async () => {
    const gone = await start(() => {});
    await undo.pop()?.();
    const { reason, condition, message } = await failure(through(gone.port));
    expect([reason.type, condition]).toEqual(["CONNECTION_REFUSED", "proxy_fails"]);
    expect(message).toContain(`the proxy http://127.0.0.1:${gone.port}: `);
  });

  test("is left at once when the sink stops", async () => {
    const proxy = await start(() => {});
    const stop = new AbortController();
    const opening = failure(through(proxy.port, { timeoutMs: 20_000, ctx: { signal: stop.signal } }));
    await expect.poll(() => proxy.said().length).toBeGreaterThan(0);
    stop.abort();
    expect((await opening).reason.type).toBe("CONNECTION_CLOSED");
    await expect.poll(() => proxy.open()).toBe(0);
  });
});

describe("the policy", () => {
  const asked = async (sinks: object, to: To = {}) => {
    const proxy = await start((said, socket) => isWhole(said) && socket.write(OPENED));
    const permit = permitOf(policySchema.parse({ sinks }), "sinks");
    const error = await failure(through(proxy.port, { ...to, ctx: { permit } }));
    return { condition: error.condition, message: error.message, isConnected: proxy.said().length > 0 };
  };

  test.each([
    ["the proxy's address", {}, {}, /the proxy http:\/\/127\.0\.0\.1:\d+: 127\.0\.0\.1 is a loopback address/],
    ["a port of the broker", { loopback: true, ports: [1, 1883] }, {}, /port 8883 of broker\.example is not among the ports/],
    [
      "an address of the broker",
      { loopback: true, networks: ["10.0.0.0/8"] },
      { host: "192.168.1.1" },
      /192\.168\.1\.1 is not within the networks/,
    ],
    ["the cloud's metadata", { loopback: true }, { host: "169.254.169.254" }, /metadata address/],
    [
      "a name, where networks are named",
      { loopback: true, networks: ["10.0.0.0/8"] },
      {},
      /broker\.example is a name that a proxy looks up.*tls\.server_name/,
    ],
  ])("closes %s", async (_what, sinks, to, words) => {
    const { condition, message, isConnected } = await asked(sinks, to);
    expect([condition, isConnected]).toEqual([expect.stringMatching(/forbidden_by_policy|configuration_invalid/), false]);
    expect(message).toMatch(words);
  });

  test("lets a name through where it names no networks", async () => {
    const proxy = await start((said, socket) => isWhole(said) && socket.write(OPENED));
    await through(proxy.port, { ctx: { permit: permitOf(policySchema.parse({ sinks: { loopback: true } }), "sinks") } });
  });

  test("never has a host in a request that would add to it", async () => {
    const proxy = await start((said, socket) => isWhole(said) && socket.write(OPENED));
    const error = await failure(through(proxy.port, { host: "broker\r\nX: y" }));
    expect([error.condition, proxy.said().length]).toEqual(["configuration_invalid", 0]);
  });
});
