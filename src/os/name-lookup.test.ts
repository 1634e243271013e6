import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type NameServer, startNameServer } from "../../test/support/name-server.ts";
import { candidates, createNameLookup, fromHosts } from "./name-lookup.ts";

const V6 = "fd00:0000:0000:0000:0000:0000:0000:0001";
const forever = new AbortController().signal;
/** Who waits for an answer that does not come waits as long as a question has. */
const ONE_TRY_MS = 1500;

describe("names", () => {
  let server: NameServer;
  let folder: string;
  let lookUp: ReturnType<typeof createNameLookup>;
  beforeAll(async () => {
    server = await startNameServer();
    folder = mkdtempSync(path.join(tmpdir(), "names-"));
    const [hostsFile, resolvConf] = [path.join(folder, "hosts"), path.join(folder, "resolv.conf")];
    writeFileSync(hostsFile, "10.1.1.1 Press-1 press-1.plant # a comment\n# 10.9.9.9 press-2\n");
    writeFileSync(resolvConf, "nameserver 192.0.2.1\nsearch plant.lab\n");
    lookUp = createNameLookup({ servers: [server.at], hostsFile, resolvConf });
    server.names
      .set("plc.lab", ["10.0.0.1", "10.0.0.2"])
      .set("mill.plant.lab", ["10.0.0.3"])
      .set("broken.lab", 2)
      .set("never.lab", "silent");
  });
  afterAll(async () => {
    rmSync(folder, { recursive: true });
    await server.close();
  });

  it("come from the hosts file first, then from the name server, completed by the search list", async () => {
    expect(await lookUp("press-1", forever)).toEqual([{ address: "10.1.1.1", family: 4 }]);
    expect((await lookUp("PLC.lab", forever)).map((a) => a.address).sort()).toEqual(["10.0.0.1", "10.0.0.2"]);
    expect(await lookUp("mill", forever)).toEqual([{ address: "10.0.0.3", family: 4 }]);
    expect(await lookUp("10.2.3.4", forever)).toEqual([{ address: "10.2.3.4", family: 4 }]);
  });

  it.each([
    ["nowhere.lab", "ENOTFOUND"],
    ["broken.lab", "ESERVFAIL"],
  ])("that fail keep the name server's code: %s", async (name, code) => {
    await expect(lookUp(name, forever)).rejects.toMatchObject({ code, syscall: "queryA" });
  });

  it.each([
    ["without IPv6, where that question is never answered", { v4: ["10.0.0.1"], v6: "silent" }, ["10.0.0.1"]],
    ["without IPv4, where that question is never answered", { v4: "silent", v6: [V6] }, ["fd00::1"]],
    ["of both kinds, IPv4 first, whichever answer comes first", { v4: ["10.0.0.1"], v6: [V6], v4AfterMs: 2 }, ["10.0.0.1", "fd00::1"]],
    ["of both kinds, the later answer not waited for", { v4: ["10.0.0.1"], v6: [V6], v6AfterMs: 4000 }, ["10.0.0.1"]],
    ["that have IPv6 only", { v4: [], v6: [V6] }, ["fd00::1"]],
    ["that have IPv6 only, said later", { v4: [], v6: [V6], v6AfterMs: 200 }, ["fd00::1"]],
    ["whose IPv6 question is refused", { v4: ["10.0.0.1"], v6: 2, v4AfterMs: 100 }, ["10.0.0.1"]],
    ["whose IPv6 question is denied, as some servers do wrongly", { v4: ["10.0.0.1"], v6: 3, v4AfterMs: 200 }, ["10.0.0.1"]],
  ] as const)("are found %s", async (_, answers, wanted) => {
    server.names.set("both.lab", answers);
    const began = performance.now();
    expect((await lookUp("both.lab", forever)).map(({ address }) => address)).toEqual(wanted);
    expect(performance.now() - began).toBeLessThan(ONE_TRY_MS);
  });

  it("that do not exist are known not to while the IPv6 question has no answer", async () => {
    server.names.set("nobody.lab", { v4: 3, v6: "silent" });
    const began = performance.now();
    await expect(lookUp("nobody.lab", forever)).rejects.toMatchObject({ code: "ENOTFOUND" });
    expect(performance.now() - began).toBeLessThan(ONE_TRY_MS);
  });

  it("that are addresses in another spelling are not asked for", async () => {
    expect(await lookUp("127.1", forever)).toEqual([{ address: "127.0.0.1", family: 4 }]);
    expect(await lookUp("::FFFF:10.0.0.1", forever)).toEqual([{ address: "10.0.0.1", family: 4 }]);
  });

  it("that are never answered end when the signal aborts, and delay no other", async () => {
    const stop = new AbortController();
    const dead = Array.from({ length: 20 }, () =>
      lookUp("never.lab", stop.signal).then(
        () => "answered",
        (error: unknown) => error,
      ),
    );
    expect(await lookUp("plc.lab", forever)).toHaveLength(2);
    stop.abort();
    for (const ended of await Promise.all(dead)) expect(ended).toMatchObject({ syscall: "queryA" });
  });
});

describe("the files", () => {
  it("name hosts in any case, IPv4 first", () => {
    expect(fromHosts("fd00::1 plc\n10.0.0.1\tother PLC\n", "plc")).toEqual([
      { address: "10.0.0.1", family: 4 },
      { address: "fd00::1", family: 6 },
    ]);
    expect(fromHosts("not-an-address plc", "plc")).toEqual([]);
  });

  it.each([
    ["plc", "search a.b c.d", ["plc.a.b", "plc.c.d", "plc"]],
    ["plc.x", "search a.b", ["plc.x", "plc.x.a.b"]],
    ["plc.x", "search a.b\noptions timeout:1 ndots:2", ["plc.x.a.b", "plc.x"]],
    ["plc", "nameserver 10.0.0.1", ["plc"]],
  ])("complete %s by %j", (name, text, wanted) => expect(candidates(name, text)).toEqual(wanted));
});
