import { type ChildProcess, execFile, execFileSync, spawn } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import path from "node:path";
import { promisify } from "node:util";
import { connect, type MqttClient } from "mqtt";
import { type ModbusPlant, type PlantUnit, put, registersOf, startModbusPlant } from "../../drivers/modbus_tcp/simulator.ts";
import { type OpcuaSimulator, PLANT_NAMESPACE, startOpcuaSimulator, USERS } from "../../drivers/opcua/simulator.ts";
import { S7Memory, type S7Plc, startS7Plc } from "../../drivers/s7/simulator.ts";
import type { Api } from "../support/api.ts";
import { freePort } from "../support/free-port.ts";

/** An address on the network beside this machine, where nobody answers until somebody has it. */
export const AWAY = "10.99.9.7";
/** An address of this machine that its policy closes. */
export const CLOSED = "10.99.8.7";
/** The client identifier that two clients have. */
export const SHARED_CLIENT = "line-4";
/** What the user of the OPC UA server has in truth. */
export const RIGHT_PASSWORD = USERS["reader"] ?? "";
/** The user of the broker's port for users, and what it has in truth. */
export const [BROKER_USER, BROKER_PASSWORD] = ["hall", "hall-3-secret"];
/** What the variable of the wrong byte order is in truth. */
export const IN_THE_RIGHT_ORDER = 42.5;

/** Places of the registers of a plan that is too long: each needs a request of its own. */
const SCATTERED = Array.from({ length: 12 }, (_, i) => i * 200);
const SLOW_MS = 120;
/** The slow device takes longer than an answer is waited for by default. */
const VERY_SLOW_MS = 4000;
/** A rack and slot as the CPU compares them: rack × 32 + slot. */
const RIGHT_SLOT = 1;

const run = promisify(execFile);

type Details = Readonly<Record<string, unknown>>;
interface Source {
  readonly name: string;
  readonly details: Details;
  /** Addresses by name. */
  readonly variables: Readonly<Record<string, string>>;
}

/** The devices and brokers of the cabinet, with everything that is wrong with them. Runs in a network of its own. */
export class Plant {
  readonly #folder: string;
  readonly #devices: { close(): unknown }[] = [];
  readonly #uuids = new Map<string, string>();
  #api: Api | undefined;
  #modbus: ModbusPlant | undefined;
  #gateway: ModbusPlant | undefined;
  #dead = true;
  #hole = true;
  #crawls = true;
  #scattered: ModbusPlant | undefined;
  #single: ModbusPlant | undefined;
  #slow: ModbusPlant | undefined;
  #banner: Server | undefined;
  #server: OpcuaSimulator | undefined;
  #strict: OpcuaSimulator | undefined;
  #plc: S7Plc | undefined;
  #rival: MqttClient | undefined;
  #brokers = { down: 0, strict: 0, tls: 0, users: 0 };
  #wrongPort = 0;
  readonly #mosquittos: ChildProcess[] = [];
  #strictBroker: ChildProcess | undefined;

  /** `folder`: for the files of its brokers. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /** All devices, as they are when nobody has looked after them. */
  async start(): Promise<void> {
    this.#wrongPort = await freePort();
    this.#brokers = { down: await freePort(), strict: await freePort(), tls: await freePort(), users: await freePort() };
    this.#modbus = await this.#keep(
      startModbusPlant({
        host: "0.0.0.0",
        units: new Map([[1, registers()]]),
        misbehave: ({ start }) => (this.#hole && start === 4000 ? { exception: 2 } : undefined),
      }),
    );
    this.#scattered = await this.#keep(startModbusPlant({ units: new Map([[1, registers()]]), misbehave: () => ({ delayMs: SLOW_MS }) }));
    this.#gateway = await this.#keep(
      startModbusPlant({
        units: new Map([1, 7].map((unit) => [unit, registers()])),
        misbehave: ({ unit }) => (this.#dead && unit === 7 ? { exception: 11 } : undefined),
      }),
    );
    this.#single = await this.#keep(
      startModbusPlant({ units: new Map([[1, registers()]]), misbehave: ({ unit }) => (unit === 1 ? undefined : { silent: true }) }),
    );
    this.#slow = await this.#keep(
      startModbusPlant({ units: new Map([[1, registers()]]), misbehave: () => (this.#crawls ? { delayMs: VERY_SLOW_MS } : undefined) }),
    );
    const memory = new S7Memory();
    memory.create("DB1", 64);
    this.#plc = await this.#keep(startS7Plc({ memory }));
    this.#plc.positions = new Set([RIGHT_SLOT]);
    this.#server = await this.#keep(startOpcuaSimulator({ bulk: 4 }));
    this.#strict = await this.#keep(startOpcuaSimulator({ bulk: 4, trust: [] }));
    this.#banner = createServer((socket) => socket.on("error", () => {}).write("SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n"));
    await new Promise<void>((done) => this.#banner?.listen(0, "127.0.0.1", done));
    await writeFile(this.#acl, "topic write line-4/#\ntopic read #", { mode: 0o600 });
    this.#strictBroker = await this.#startBroker("strict", await this.#strictListeners());
    this.#rival = connect({
      host: "127.0.0.1",
      port: this.#brokers.strict,
      clientId: SHARED_CLIENT,
      protocolVersion: 5,
      reconnectPeriod: 200,
    });
    this.#rival.on("error", () => {});
  }

  /** Makes sources and sinks of it over the API, with what is wrong in the configuration. */
  async configure(api: Api, collector: string): Promise<void> {
    this.#api = api;
    for (const [i, { name, details, variables }] of this.#sources().entries()) {
      const machine = `00000000-0000-4000-8000-${String(i + 1).padStart(12, "0")}`;
      const { uuid } = await api.post("/v2/data-sources", { name, collector, machine, details });
      this.#uuids.set(name, uuid);
      await api.patch(`/v2/data-sources/${uuid}`, { readout_interval: 1 });
      for (const [variable, address] of Object.entries(variables)) {
        const [, place = address, type] = /^(.*?)(?: as (\w+))?$/.exec(address) ?? [];
        await api.post("/ext/v1/variables", { data_source: uuid, name: variable, address: place, ...(type !== undefined && { type }) });
      }
    }
    for (const [name, details] of Object.entries(this.#sinks())) {
      const { uuid } = await api.post("/v2/data-sinks", { name, collector, details: { type: "mqtt", host: "127.0.0.1", ...details } });
      this.#uuids.set(name, uuid);
    }
  }

  /** What no command of the collector can mend: it is done at the machine, at the broker or in the configuration. */
  async heal(): Promise<void> {
    await this.#keep(startModbusPlant({ port: this.#wrongPort, units: new Map([[1, registers()]]) }));
    execFileSync("ip", ["addr", "add", `${AWAY}/32`, "dev", "lo"]);
    this.#dead = false;
    this.#hole = false;
    this.#crawls = false;
    await this.#set("dead-name", { host: "127.0.0.1" });
    await this.#set("other-protocol", { port: this.#modbus?.port });
    await this.#rival?.endAsync(true);
    // Taken without a restart.
    await writeFile(this.#acl, "topic readwrite #", { mode: 0o600 });
    this.#strictBroker?.kill("SIGHUP");
    await this.#startBroker("back", openListener(this.#brokers.down, this.#acl));
  }

  /** DER of a client's certificate, which the server that trusts nobody trusts from now on. */
  async trust(certificate: Uint8Array): Promise<void> {
    await this.#strict?.trust(certificate);
    // A source that is changed does not wait for its next try.
    await this.#api?.patch(`/v2/data-sources/${this.#uuids.get("untrusted-client")}`, { readout_interval: 2 });
  }

  /** A data source and a data sink that are well, of a collector that this API has not seen before; its uuid. */
  async another(): Promise<string> {
    const api = this.#api;
    if (!api) throw new Error("the plant is not configured");
    const { uuid: collector } = await api.post("/ext/v1/collectors", { name: "hall-9" });
    const details = { type: "modbus_tcp", host: "127.0.0.1", port: this.#modbus?.port };
    const machine = "00000000-0000-4000-8000-000000000099";
    const source = await api.post("/v2/data-sources", { name: "press-9", collector, machine, details });
    await api.patch(`/v2/data-sources/${source.uuid}`, { readout_interval: 1 });
    await api.post("/ext/v1/variables", { data_source: source.uuid, name: "temperature", address: "holding:0" });
    const broker = { type: "mqtt", host: "127.0.0.1", port: this.#brokers.strict, topic: "hall-9/{source}" };
    await api.post("/v2/data-sinks", { name: "hall-9", collector, details: broker });
    return collector;
  }

  async stop(): Promise<void> {
    await this.#rival?.endAsync(true);
    this.#banner?.close();
    for (const broker of this.#mosquittos) broker.kill("SIGKILL");
    for (const device of this.#devices) await device.close();
  }

  async #set(source: string, details: Details): Promise<void> {
    await this.#api?.patch(`/v2/data-sources/${this.#uuids.get(source)}`, { details });
  }

  async #keep<D extends { close(): unknown }>(started: Promise<D>): Promise<D> {
    const device = await started;
    this.#devices.push(device);
    return device;
  }

  #sources(): readonly Source[] {
    const modbus = (port: number | undefined, more: Details = {}): Details => ({ type: "modbus_tcp", host: "127.0.0.1", port, ...more });
    const one = { temperature: "holding:0" };
    return [
      { name: "wrong-port", details: modbus(this.#wrongPort), variables: one },
      { name: "unplugged", details: modbus(this.#modbus?.port, { host: AWAY }), variables: one },
      { name: "closed-host", details: modbus(this.#modbus?.port, { host: CLOSED }), variables: one },
      { name: "wrong-unit", details: modbus(this.#single?.port), variables: one },
      { name: "slow", details: modbus(this.#slow?.port), variables: one },
      { name: "dead-name", details: modbus(this.#modbus?.port, { host: "press-9.plant.invalid" }), variables: one },
      {
        name: "wrong-rack",
        details: { type: "s7", host: "127.0.0.1", port: this.#plc?.port, rack: 0, slot: 2 },
        variables: { level: "DB1.DBD4 as float32" },
      },
      {
        name: "wrong-password",
        details: opcua(this.#strict, "None", { type: "UserNamePassword", username: "reader", password: "guessed" }),
        variables: { bulk: `nsu=${PLANT_NAMESPACE};s=Bulk.1` },
      },
      { name: "untrusted-server", details: opcua(this.#server, "SignAndEncrypt"), variables: { bulk: `nsu=${PLANT_NAMESPACE};s=Bulk.1` } },
      { name: "untrusted-client", details: opcua(this.#strict, "SignAndEncrypt"), variables: { bulk: `nsu=${PLANT_NAMESPACE};s=Bulk.1` } },
      { name: "hole", details: modbus(this.#modbus?.port), variables: { ...one, pressure: "holding:4000" } },
      { name: "byte-order", details: modbus(this.#modbus?.port), variables: { level: "holding:20 as float32" } },
      { name: "other-protocol", details: modbus(portOf(this.#banner)), variables: one },
      { name: "gateway", details: modbus(this.#gateway?.port), variables: { one: "1/holding:0", seven: "7/holding:0" } },
      { name: "dead-unit", details: modbus(this.#gateway?.port), variables: { seven: "7/holding:0" } },
      {
        name: "too-long",
        details: modbus(this.#scattered?.port),
        variables: Object.fromEntries(SCATTERED.map((place) => [`v${place}`, `holding:${10_000 + place}`])),
      },
      { name: "no-variables", details: modbus(this.#modbus?.port), variables: {} },
    ];
  }

  #sinks(): Readonly<Record<string, Details>> {
    return {
      "broker-down": { port: this.#brokers.down, topic: "hall-3/{source}" },
      "broker-rights": { port: this.#brokers.strict, topic: "hall-3/{source}" },
      "broker-password": { port: this.#brokers.users, topic: "hall-3/{source}" },
      "tls-on-plain": { port: this.#brokers.strict, topic: "hall-3/{source}" },
      "plain-on-tls": { port: this.#brokers.tls, topic: "hall-3/{source}" },
      "self-signed": { port: this.#brokers.tls, topic: "hall-3/{source}" },
      "client-taken": { port: this.#brokers.strict, topic: "line-4/{source}", client_id: SHARED_CLIENT },
    };
  }

  get #acl(): string {
    return path.join(this.#folder, "acl");
  }

  /** One broker with three ports: for everybody by its list of rights, with TLS under a certificate of its own, and for its user. */
  async #strictListeners(): Promise<readonly string[]> {
    const [cert, key, users] = [certificateIn(this.#folder), path.join(this.#folder, "broker.key"), path.join(this.#folder, "users")];
    const { strict, tls, users: port } = this.#brokers;
    await Promise.all([
      // The library of the OPC UA servers sets OPENSSL_CONF.
      run("openssl", ["req", "-x509", ...EC_KEY, "-keyout", key, "-out", cert, "-days", "300", "-subj", "/CN=broker", ...FOR_LOOPBACK], {
        env: { PATH: process.env["PATH"] },
      }),
      run("mosquitto_passwd", ["-b", "-c", users, BROKER_USER, BROKER_PASSWORD]),
    ]);
    return [
      "per_listener_settings true",
      ...openListener(strict, this.#acl),
      ...openListener(tls),
      `certfile ${cert}`,
      `keyfile ${key}`,
      `listener ${port} 127.0.0.1`,
      "allow_anonymous false",
      `password_file ${users}`,
    ];
  }

  async #startBroker(name: string, listeners: readonly string[]): Promise<ChildProcess> {
    const file = path.join(this.#folder, `${name}.conf`);
    await writeFile(file, ["user root", ...listeners].join("\n"));
    const broker = spawn("/usr/sbin/mosquitto", ["-c", file], { stdio: "ignore" });
    this.#mosquittos.push(broker);
    return broker;
  }
}

/** Self-signed, of the broker with TLS, in the plant's folder. */
export const certificateIn = (folder: string): string => path.join(folder, "broker.pem");

const EC_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc"];
const FOR_LOOPBACK = ["-addext", "subjectAltName=IP:127.0.0.1"];

/** Lets everybody in, with the rights of a list, or with all. */
const openListener = (port: number, acl?: string): readonly string[] => [
  `listener ${port} 127.0.0.1`,
  "allow_anonymous true",
  ...(acl === undefined ? [] : [`acl_file ${acl}`]),
];

/** Of a device whose every register of the suite is there. */
function registers(): PlantUnit {
  const holding = new Map<number, number>([
    [0, 21],
    [4000, 7],
  ]);
  put(holding, 20, registersOf("float32", IN_THE_RIGHT_ORDER).reverse());
  for (const place of SCATTERED) holding.set(10_000 + place, place);
  return { holding };
}

const portOf = (server: Server | undefined): number => {
  const address = server?.address();
  return typeof address === "object" && address !== null ? address.port : 0;
};

const opcua = (server: OpcuaSimulator | undefined, mode: string, user: Details = { type: "Anonymous" }): Details => ({
  type: "opcua",
  host: "127.0.0.1",
  port: server?.port,
  endpoint_url: server?.endpointUrl,
  security_settings: {
    security_mode: mode,
    endpoint_security_policy: mode === "None" ? "None" : "Basic256Sha256",
    token_security_policy: user["type"] === "Anonymous" ? "None" : "Basic256Sha256",
  },
  user_identity: user,
});
