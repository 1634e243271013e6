import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { DRIVERS } from "../../../drivers/index.ts";
import { lastGoodFile } from "../../api/embedded.ts";
import { saveLastGood } from "../../api/last-good.ts";
import { changeKeptOptions } from "../../configuration/kept-options.ts";
import type { DataSink, DataSource } from "../../model/resources.ts";
import { settingsSchema } from "../../model/settings.ts";
import { SINKS, sinkEntryOf } from "../../sinks/index.ts";
import { runCommand, settingsFile } from "../testing.ts";
import { type Flow, type FlowInput, flowsOf } from "./flow-list.ts";
import { linesOf } from "./flows.ts";

const DOC = path.resolve(import.meta.dirname, "../../../docs/generated/flows.md");
const COLLECTOR = "6f2a1d1e-4b0d-4a57-9d51-7f0c6d1f0a01";
const security_settings = { security_mode: "SignAndEncrypt", endpoint_security_policy: "Basic256Sha256", token_security_policy: "None" };

/** Details of one data source of each type, as the API gives them. */
const SOURCES: Readonly<Record<string, object>> = {
  fins: { host: "10.0.0.9", port: 9600, local_address: "0.0.0", remote_address: "0.10.0" },
  modbus_tcp: { host: "10.0.0.5", port: 502 },
  odac: { host: "10.0.0.14", port: 2020 },
  plastcontrol: { host: "10.0.0.15", port: 4000, readout_mode: { type: "active" } },
  vendor_b: { host: "10.0.0.16", port: 18_901, machine: "C5", initialization_mode: "Default" },
  opcua: { host: "10.0.0.7", port: 4840, endpoint_url: "opc.tcp://10.0.0.7:4840", security_settings, user_identity: { type: "Anonymous" } },
  s7: { host: "10.0.0.8", port: 102, rack: 0, slot: 1 },
  s7plus: { host: "10.0.0.11", port: 102, password: { type: "none" } },
  vendor_gateway: { host: "10.0.0.13", port: 7000, protocol_details: { protocol: "OPC_DA", server_name: "Plant.Server.1" } },
  vendor_a: { host: "10.0.0.12", port: 44818 },
};
const SINK_DETAILS: Readonly<Record<string, object>> = {
  mqtt: { host: "broker.plant.example", port: 8883, topic: "plant/{source}" },
  opcua: { port: 4840, security_modes: ["Sign", "SignAndEncrypt"], security_policies: ["Basic256Sha256"], users: [] },
  platform: {},
};

const sourceOf = (type: string, details: object, name = type): DataSource =>
  ({ uuid: COLLECTOR, name, type, details: { type, ...details } }) as unknown as DataSource;
const sinkOf = (type: string, details: object): DataSink =>
  ({ uuid: COLLECTOR, name: type, type, details: { type, ...details } }) as unknown as DataSink;

const given = (settings: object, sources: readonly DataSource[], sinks: readonly DataSink[]): FlowInput => ({
  settings: settingsSchema.parse(settings),
  sources,
  sinks,
  driverOf: async (type) => (await DRIVERS[type]?.driver())?.default,
  sinkKindOf: async (type) => (await sinkEntryOf(type)?.kind())?.default,
});
const WHOLE = given(
  { collector: COLLECTOR, api: { url: "https://platform.example", key_file: "key" }, sinks: { mqtt: { tls: {} } } },
  Object.entries(SOURCES).map(([type, details]) => sourceOf(type, details)),
  Object.entries(SINK_DETAILS).map(([type, details]) => sinkOf(type, details)),
);

describe("flows", () => {
  it("has one of every type of data source and data sink, each with its flow", async () => {
    expect(Object.keys(SOURCES).sort()).toEqual(Object.keys(DRIVERS).sort());
    expect(Object.keys(SINK_DETAILS).sort()).toEqual(Object.keys(SINKS).sort());
    // Without a binding these open no connection.
    expect((await flowsOf(WHOLE)).unknown.map(({ what, why }) => [what, why.includes(`bindings.${what} is missing`)])).toEqual(
      ["odac", "plastcontrol", "vendor_b"].map((type) => [type, true]),
    );
  });

  it("is what the generated table says", async () => {
    const { flows } = await flowsOf(WHOLE);
    const text = [
      "# Network flows",
      "",
      "Every connection that a collector with one data source of each type and one data sink of each type opens (out) or takes (in), as `collector flows` lists them for the configuration at hand. Hosts and ports are those of the example. The only other exits are the local socket of the command line (a file in the state folder) and what systemd passes on. `collector replay` and `collector simulate`, while a person runs them, listen as a device on loopback, or where `listen` of `policy.yaml` opens an address, and connect to no device. Where a data source or sink may be is decided by `policy.yaml` on the machine.",
      "",
      "| direction | for | host | port | transport | encryption |",
      "| --- | --- | --- | --- | --- | --- |",
      ...flows.map(
        ({ direction, what, host, port, transport, encryption }) =>
          `| ${[direction, what in DRIVERS || what in SINKS ? `\`${what}\`` : what, host, port, transport, encryption].join(" | ")} |`,
      ),
    ];
    await expect(`${text.join("\n")}\n`).toMatchFileSnapshot(DOC);
  });

  it("tells what listens, the proxy on the way, and look-ups only where there are names", async () => {
    const api = { url: "https://platform.example", key_file: "key", proxy: "http://user@10.0.0.1:3128" };
    const proxied = await flowsOf(given({ collector: COLLECTOR, api, http: { listen: "[::1]:9999" } }, [], []));
    expect(proxied.flows.map(({ direction, host, port }) => [direction, host, port])).toEqual([
      ["out", "10.0.0.1", 3128],
      ["in", "::1", 9999],
      ["in", "127.0.0.1", 8090],
    ]);
    const silent = await flowsOf(given({ collector: COLLECTOR, api, page: { enabled: false } }, [], []));
    expect(silent.flows.map(({ what }) => what)).not.toContain("page for browsers");
    const sinks = { mqtt: { tls: {}, proxy: "socks5://[fd00::9]" } };
    const behind = await flowsOf(given({ sinks }, [], [sinkOf("mqtt", SINK_DETAILS["mqtt"] ?? {})]));
    expect(behind.flows[0]).toMatchObject({
      what: "mqtt (broker.plant.example:8883) through the proxy",
      host: "fd00::9",
      port: 1080,
      encryption: "TLS",
    });
    const two = await flowsOf(given({ sinks: { mqtt: { fallback: "[fd00::8]:8884" } } }, [], [sinkOf("mqtt", SINK_DETAILS["mqtt"] ?? {})]));
    expect(two.flows.slice(0, 2).map(({ what, host, port }) => [what, host, port])).toEqual([
      ["mqtt", "broker.plant.example", 8883],
      ["mqtt (second)", "fd00::8", 8884],
    ]);
    const alone = await flowsOf(given({}, [sourceOf("modbus_tcp", { host: "press.plant.example", port: 502 })], []));
    expect(alone.flows.map(({ direction, type, port }) => [direction, type, port])).toEqual([
      ["out", "modbus_tcp", 502],
      ["in", "http", 8420],
      ["in", "http", 9420],
      ["in", "http", 8090],
      ["out", "dns", 53],
    ]);
  });

  it("says that what a plugin sends passes no fence", async () => {
    const bindings = { odac: { plugin: { socket: "/run/collector-plugin/odac.sock" } } };
    const { flows, unknown } = await flowsOf(given({ bindings }, [sourceOf("odac", SOURCES["odac"] ?? {})], []));
    expect(unknown).toEqual([]);
    expect(flows.find(({ what }) => what === "odac")).toMatchObject({
      host: "10.0.0.14",
      port: 2020,
      encryption: expect.stringContaining("passes no fence"),
    });
  });

  it("takes the options that sink add keeps on this machine, and claims nothing of sinks where they cannot be read", async () => {
    const folder = mkdtempSync(path.join(os.tmpdir(), "collector-flows-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const config = settingsFile(folder, { state_dir: folder });
    const mqtt = {
      uuid: COLLECTOR,
      name: "broker",
      collector: COLLECTOR,
      type: "mqtt",
      details: { type: "mqtt", ...SINK_DETAILS["mqtt"] },
    };
    const times = { fetchedAt: "2026-11-20T09:00:00.000Z", secrets: {}, areSecretsAwaited: true, revision: null };
    await saveLastGood(lastGoodFile(folder), { collector: COLLECTOR, sources: [], sinks: [mqtt], variables: [], ...times });
    await changeKeptOptions(folder, "sink", () => ({ [COLLECTOR]: { tls: {} } }));
    expect((await runCommand("flows", "--config", config)).out).toMatch(/out +broker +mqtt +broker\.plant\.example +8883 +tcp +TLS/);
    writeFileSync(path.join(folder, "sink-options.json"), "{");
    const { code, out } = await runCommand("flows", "--config", config);
    expect([code, out]).toEqual([
      4,
      expect.stringMatching(/^broker: not known: the options of data sinks on this machine cannot be read/m),
    ]);
    expect(out).not.toMatch(/broker\.plant/);
    expect((await runCommand("check", "--config", config)).out).toMatch(/error +\S*sink-options\.json: /);
  });

  it("names what it cannot list beside all others", async () => {
    const found = await flowsOf(
      given({}, [sourceOf("modbus_tcp", {}, "no-host"), sourceOf("none", {}), sourceOf("s7", SOURCES["s7"] ?? {})], []),
    );
    expect(found.unknown.map(({ what }) => what)).toEqual(["no-host", "none"]);
    expect(found.flows.map(({ what }) => what)).toContain("s7");
    expect(linesOf(found).at(-1)).toBe("none: not known: this collector has no driver for none");
    const [server] = found.flows.filter(({ direction }) => direction === "in");
    const [head, row, note] = linesOf({ flows: [{ ...(server as Flow), listening: null }], unknown: [] });
    expect([head, row, note]).toEqual([
      expect.stringMatching(/ LISTENS NOW$/),
      expect.stringMatching(/ nothing$/),
      expect.stringMatching(/: nothing listens on port \d+ now$/),
    ]);
  });
});
