import { writeFileSync } from "node:fs";
import net, { type AddressInfo } from "node:net";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { startSimulator as startFins } from "../../../drivers/fins/simulator.ts";
import { startSimulator as startModbus } from "../../../drivers/modbus_tcp/simulator.ts";
import { startSimulator as startVendorA } from "../../../drivers/vendor_a/simulator.ts";
import { temporaryFolder } from "../../api/server/testing.ts";
import { sleep } from "../../base/timer.ts";
import { EXIT } from "../io.ts";
import { type RunOptions, runCommandWith, settingsFile } from "../testing.ts";
import { hellosAt, search, USUAL_PORTS } from "./search.ts";

const cleanUp: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step();
});

/** `collector find` with this policy. */
function found(policy: string, options: RunOptions, ...words: readonly string[]) {
  const folder = temporaryFolder();
  writeFileSync(join(folder, "policy.yaml"), policy);
  return runCommandWith({ env: { HOME: folder }, ...options }, "find", ...words, "--config", settingsFile(folder, {}));
}

const OPEN = "find: [127.0.1.0/29]\n";

/** A server that takes connections, does this with each and says nothing; `times`: when they came, monotonic ms. */
async function muteAt(host: string, work: (socket: net.Socket) => void = () => {}) {
  const times: number[] = [];
  const server = net.createServer((socket) => {
    times.push(performance.now());
    work(socket.on("error", () => {}).resume());
  });
  await new Promise<void>((done) => server.listen(0, host, done));
  cleanUp.push(() => server.close());
  return { port: (server.address() as AddressInfo).port, times };
}

describe("collector find", () => {
  it("names the controllers of a network with the commands that add them", async () => {
    const controller = await startVendorA({ host: "127.0.1.1" });
    const plc = await startFins({ host: "127.0.1.2" });
    const meter = await startModbus({ host: "127.0.1.2" });
    cleanUp.push(
      () => controller.close(),
      () => plc.close(),
      () => meter.close(),
    );
    const ports = [controller, meter, plc].map(({ port }) => port).join(",");
    const { code, out } = await found(OPEN, {}, "127.0.1.0/30", "--ports", ports, "--json");
    const printed = JSON.parse(out);
    expect([code, printed.ok, printed.looked_at]).toEqual([EXIT.good, true, 2]);
    expect(printed.found.map((one: { address: string }) => one.address).sort()).toEqual(["127.0.1.1", "127.0.1.2", "127.0.1.2"]);
    expect(printed.found).toEqual(
      expect.arrayContaining([
        expect.objectContaining({
          ...{ address: "127.0.1.1", port: controller.port, type: "vendor_a", maker: "Rockwell Automation", firmware: "33.011" },
          add: `collector source add NAME vendor_a host=127.0.1.1 port=${controller.port}`,
        }),
        expect.objectContaining({ address: "127.0.1.2", type: "modbus_tcp", model: null }),
        expect.objectContaining({ address: "127.0.1.2", type: "fins", maker: "Omron", model: expect.stringMatching(/^CP1L/) }),
      ]),
    );
  });

  it("asks nothing of a network that the policy does not open, and prints the line", async () => {
    const { port, times } = await muteAt("127.0.1.1");
    for (const policy of ["sources: {networks: [127.0.0.0/8]}\n", "find: [10.0.0.0/24]\n"]) {
      const { code, err } = await found(policy, {}, "127.0.1.0/30", "--ports", String(port));
      expect([code, err]).toEqual([
        EXIT.usage,
        expect.stringContaining("does not open 127.0.1.0/30 for a search; to open it, put `find: ["),
      ]);
      expect(err).toContain("127.0.1.0/30]`");
    }
    expect((await found(OPEN, {}, "127.0.1.0/28", "--ports", String(port))).code).toBe(EXIT.usage);
    expect((await found("find: [127.0.0.0/8]\n", {}, "127.0.0.0/21")).err).toContain("more than 1024 addresses");
    expect(times).toEqual([]);
  });

  it("ends with what was found so far where it is stopped, and counts on a terminal", async () => {
    const meter = await startModbus({ host: "127.0.1.1" });
    cleanUp.push(() => meter.close());
    const silent = await muteAt("127.0.1.2");
    const stop = new AbortController();
    const onOut = (text: string) => text.includes("Modbus TCP") && stop.abort();
    const options = { signal: stop.signal, onOut, isWatched: true };
    const { code, out, err } = await found(OPEN, options, "127.0.1.0/30", "--ports", `${meter.port},${silent.port}`);
    expect([code, out]).toEqual([
      EXIT.good,
      expect.stringContaining(`127.0.1.1:${meter.port}  Modbus TCP\n  collector source add NAME modbus_tcp`),
    ]);
    expect(out).toMatch(/127\.0\.1\.0\/30: 1 port answers; stopped after 0 of 2 addresses\.\n$/);
    expect(err).toMatch(/^$|of 2 addresses looked at/);
  });
});

describe("a search", () => {
  const started = (addresses: readonly string[], ports: readonly number[]) => {
    const stop = new AbortController();
    const done = search({ addresses, ports, signal: stop.signal, tell: () => {}, looked: () => {} });
    return async () => {
      stop.abort();
      await done;
    };
  };

  it("connects to a device once a second, however soon that hangs up", async () => {
    const { port, times } = await muteAt("127.0.1.1", (socket) => socket.end());
    const stop = started(["127.0.1.1"], [port]);
    await expect.poll(() => times.length, { timeout: 15_000, interval: 20 }).toBe(3);
    await stop();
    // Times of accepting: one that is seen late lies nearer to the next.
    for (const place of [1, 2]) expect((times[place] ?? 0) - (times[place - 1] ?? 0)).toBeGreaterThan(600);
  });

  it("asks sixteen devices at once", async () => {
    const { port, times } = await muteAt("0.0.0.0");
    const stop = started(
      Array.from({ length: 40 }, (_, i) => `127.0.1.${i + 1}`),
      [port],
    );
    await expect.poll(() => times.length, { interval: 20 }).toBe(16);
    await sleep(300);
    expect(times).toHaveLength(16);
    await stop();
  });

  it("sends at a usual port only the requests of its protocol", () => {
    expect(USUAL_PORTS).toEqual([44_818, 502, 4840, 9600, 102]);
    expect(hellosAt(502).map(({ name }) => name)).toEqual(["Modbus TCP"]);
    expect(hellosAt(1502).length).toBeGreaterThan(5);
  });
});
