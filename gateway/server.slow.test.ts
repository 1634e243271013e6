import tls from "node:tls";
import { afterEach, describe, expect, it } from "vitest";
import { LineClient } from "../test/support/line-client.ts";
import { GatewayError } from "./errors.ts";
import { Gateway, type GatewayOptions } from "./server.ts";
import { SimulatedPlant, SimulatedServer, type Trouble } from "./simulated-plant.ts";

const HELLO = '{"id":1,"request":"hello","versions":[1,9],"client":"test","max_line_bytes":65536}';
const OPEN = '{"id":2,"request":"open","target":{"protocol":"OPC_DA","server_name":"plant.opcda.1"}}';
const KEY = Buffer.alloc(32, 7);

const open: { close(): unknown }[] = [];
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close();
});

function simulated(): { readonly plant: SimulatedPlant; readonly server: SimulatedServer } {
  const plant = new SimulatedPlant();
  const items = [
    { item: "Force", type: "float64", value: 812.5 },
    { item: "Long", type: "string", value: "x".repeat(40_000) },
  ];
  return { plant, server: plant.add({ protocol: "OPC_DA", server_name: "Plant.OpcDa.1" }, new SimulatedServer("Plant", items)) };
}

async function start(options: Partial<GatewayOptions> = {}) {
  const { plant, server } = simulated();
  const gateway = await Gateway.start({ backend: plant, ...options });
  open.push(gateway);
  const client = () => {
    const one = LineClient.to(gateway.port);
    open.push(one);
    return one;
  };
  return { gateway, server, client };
}

async function opened(client: LineClient): Promise<LineClient> {
  await client.ask(HELLO);
  expect(await client.ask(OPEN)).toMatchObject({ answer: { server: "Plant" } });
  return client;
}

const codeOf = (answer: unknown) => (answer as { readonly error?: { readonly code: string } }).error?.code ?? "answered";

describe("lines that are wrong", () => {
  it.each([
    ["no JSON", "{", "bad_request"],
    ["no object", "[1]", "bad_request"],
    ["null", "null", "bad_request"],
    ["no id", '{"request":"hello"}', "bad_request"],
    ["an id that is no number", '{"id":"1","request":"hello"}', "bad_request"],
    ["deep nesting", '{"a":'.repeat(30_000), "bad_request"],
    ["no UTF-8", Buffer.from([0x7b, 0xff, 0x7d, 0x0a]), "bad_request"],
    ["too long", "{".repeat(1_048_576), "line_too_long"],
    ["TLS, whose first line may not end", Buffer.from([0x16, 0x03, 0x01]), "bad_request"],
  ])("%s: refused without a number, and the connection closed", async (_, line, code) => {
    const { client } = await start();
    const one = client();
    one.send(line);
    const answer = JSON.parse((await one.next()) ?? "{}");
    expect([answer.id, answer.error.code]).toEqual([null, code]);
    expect(await one.next()).toBeUndefined();
  });

  it.each([
    ['{"id":1,"request":"read","epoch":"1","items":[]}', "bad_request"],
    ['{"id":1,"request":"hello","versions":[],"client":"","max_line_bytes":65536}', "bad_request"],
    ['{"id":1,"request":"hello","versions":[1],"client":"","max_line_bytes":5}', "bad_request"],
    ['{"id":1,"request":"hello","versions":[2],"client":"","max_line_bytes":65536}', "unsupported_version"],
    ['{"id":1,"request":"__proto__"}', "unknown_request"],
    ['{"id":1}', "unknown_request"],
  ])("%s before hello: %s, and the connection goes on", async (line, code) => {
    const { client } = await start();
    const one = client();
    expect(codeOf(await one.ask(line))).toBe(code);
    await opened(one);
  });

  it.each([
    ['{"id":3,"request":"write","items":["Force"],"values":[1]}', "unknown_request"],
    ['{"id":3,"request":"hello","versions":[1],"client":"","max_line_bytes":65536}', "bad_request"],
    ['{"id":3,"request":"open","target":{"protocol":"OPC_DA","server_name":"Plant.OpcDa.1"}}', "bad_request"],
    ['{"id":3,"request":"resolve","items":"Force"}', "bad_request"],
    ['{"id":3,"request":"resolve","items":[1]}', "bad_request"],
    [`{"id":3,"request":"resolve","items":${JSON.stringify(Array.from({ length: 1001 }, () => "a"))}}`, "too_many_items"],
    ['{"id":3,"request":"browse","path":["Nowhere"],"max":5}', "bad_request"],
    ['{"id":3,"request":"browse","path":[],"max":5,"after":"x"}', "bad_request"],
    ['{"id":3,"request":"browse","path":[],"max":0}', "bad_request"],
    ['{"id":3,"request":"servers","within_ms":-1}', "bad_request"],
  ])("%s: %s, and the connection goes on", async (line, code) => {
    const { client } = await start();
    const one = await opened(client());
    expect(codeOf(await one.ask(line))).toBe(code);
    expect(codeOf(await one.ask('{"id":4,"request":"resolve","items":["Force"]}'))).toBe("answered");
  });
});

describe("bounds", () => {
  const read = (server: SimulatedServer, id: number, items: readonly string[], withinMs = 60_000) =>
    JSON.stringify({ id, request: "read", epoch: server.epoch, items, within_ms: withinMs });

  it("refuses an answer that the client does not take", async () => {
    const { client, server } = await start();
    const one = await opened(client());
    expect(codeOf(await one.ask(read(server, 3, ["Long", "Long"])))).toBe("too_large");
    expect(codeOf(await one.ask(read(server, 4, ["Long"])))).toBe("answered");
  });

  it("tells a server that hangs from one that answers, and gives others their answers meanwhile", async () => {
    const { client, server } = await start();
    const [one, other] = [await opened(client()), await opened(client())];
    let isSilent = true;
    server.trouble = (request): Trouble | undefined => (request === "read" && isSilent ? "silent" : undefined);
    one.send(read(server, 3, ["Force"], 200));
    expect(codeOf(await other.ask('{"id":3,"request":"resolve","items":["Force"]}'))).toBe("answered");
    expect(codeOf(JSON.parse((await one.next()) ?? "{}"))).toBe("server_timeout");
    isSilent = false;
    expect(codeOf(await one.ask(read(server, 4, ["Force"])))).toBe("answered");
  });

  it("says what a backend refuses, and what fails in it, by its number", async () => {
    const { client, server } = await start();
    const one = await opened(client());
    server.trouble = () => new GatewayError("server_unavailable", "lost", { native: "0x800706BA", retryAfterMs: 5000 });
    expect(await one.ask(read(server, 3, ["Force"]))).toEqual({
      id: 3,
      error: { code: "server_unavailable", message: "lost", native: "0x800706BA", retry_after_ms: 5000 },
    });
    server.trouble = () => {
      throw new TypeError("a mistake");
    };
    expect(await one.ask(read(server, 4, ["Force"]))).toEqual({ id: 4, error: { code: "internal_error", message: "a mistake" } });
  });

  /** Long beside the first refusal of a loaded machine, after which the server is silent no more. */
  const SILENT_MS = 2500;

  it("works on a bounded number of requests, of one connection and of all, and loses none of them", async () => {
    const { client, server } = await start({ limits: { maxInFlight: 40 } });
    let isSilent = true;
    server.trouble = (request) => (request === "read" && isSilent ? "silent" : undefined);
    const [one, other] = [await opened(client()), await opened(client())];
    const ids = Array.from({ length: 60 }, (_, i) => 100 + i);
    for (const id of ids) one.send(read(server, id, ["Force"], SILENT_MS));
    for (const id of ids) other.send(read(server, id, ["Force"], SILENT_MS));
    const codes = new Map<string, number>();
    const seen = new Set<string>();
    for (const client of [one, other])
      for (const _ of ids) {
        const answer = JSON.parse((await client.next()) ?? "{}");
        isSilent = false;
        seen.add(`${client === one} ${answer.id}`);
        codes.set(codeOf(answer), (codes.get(codeOf(answer)) ?? 0) + 1);
      }
    expect(seen.size).toBe(120);
    expect(codes.get("busy")).toBeGreaterThan(0);
    expect((codes.get("server_timeout") ?? 0) + (codes.get("busy") ?? 0) + (codes.get("answered") ?? 0)).toBe(120);
    expect(codes.get("server_timeout")).toBeLessThanOrEqual(80);
  });

  it("takes a bounded number of connections, tells the next one so, and takes one again when one has gone", async () => {
    const { client, gateway } = await start({ maxConnections: 2 });
    const [first] = [await opened(client()), await opened(client())];
    const third = client();
    expect(codeOf(await third.ask(HELLO))).toBe("too_many_connections");
    expect(await third.next()).toBeUndefined();
    first?.close();
    await expect.poll(() => gateway.connections).toBe(1);
    await opened(client());
  });

  it("closes a connection that does not say hello", async () => {
    const { client } = await start({ limits: { helloWithinMs: 50 } });
    expect(await client().next()).toBeUndefined();
  });

  it("holds no answers without bound for a client that takes none", async () => {
    const { client, server, gateway } = await start({ limits: { maxInFlight: 4 } });
    const one = await opened(client());
    one.stream.pause();
    let read_ = 0;
    server.trouble = (request) => {
      if (request === "read") read_++;
      return undefined;
    };
    for (let id = 10; id < 2010; id++) one.send(read(server, id, ["Long"]));
    const other = await opened(client());
    let before = -1;
    await expect
      .poll(
        () => {
          const isStill = before === read_;
          before = read_;
          return isStill;
        },
        { interval: 300, timeout: 20_000 },
      )
      .toBe(true);
    // 2000 answers would be 80 MB.
    expect(read_).toBeLessThan(1000);
    expect(codeOf(await other.ask(read(server, 3, ["Force"])))).toBe("answered");
    expect(gateway.connections).toBe(2);
  });
});

describe("TLS by key", () => {
  const security = { kind: "psk", identity: "collector", key: KEY } as const;
  const shake = (port: number, identity: string, key: Buffer, more: tls.ConnectionOptions = {}) =>
    new Promise<string>((done) => {
      const socket = tls.connect({
        port,
        host: "127.0.0.1",
        ciphers: "PSK:@SECLEVEL=0",
        checkServerIdentity: () => undefined,
        pskCallback: () => ({ psk: key, identity }),
        ...more,
      });
      open.push({ close: () => socket.destroy() });
      socket.on("secureConnect", () => done(`${socket.getProtocol()} ${socket.getCipher().name}`));
      socket.on("error", () => done("refused"));
    });

  it("takes the right key under the right name alone, and nothing in the clear", async () => {
    const said: string[] = [];
    const { gateway, client } = await start({ security, log: (line) => said.push(line) });
    expect(await shake(gateway.port, "collector", KEY, { ciphers: "TLS_AES_128_GCM_SHA256" })).toBe("TLSv1.3 TLS_AES_128_GCM_SHA256");
    expect(await shake(gateway.port, "collector", KEY, { maxVersion: "TLSv1.2", ciphers: "ECDHE-PSK-CHACHA20-POLY1305" })).toBe(
      "TLSv1.2 ECDHE-PSK-CHACHA20-POLY1305",
    );
    expect(await shake(gateway.port, "collector", Buffer.alloc(32, 8))).toBe("refused");
    expect(await shake(gateway.port, "other", KEY)).toBe("refused");
    // Without forward secrecy.
    expect(await shake(gateway.port, "collector", KEY, { maxVersion: "TLSv1.2", ciphers: "PSK-AES128-GCM-SHA256" })).toBe("refused");
    const plain = client();
    plain.send(HELLO);
    expect(await plain.next()).toBeUndefined();
    expect(said.join("\n")).not.toContain(KEY.toString("hex"));
    expect(said.length).toBeGreaterThan(2);
  });
});
