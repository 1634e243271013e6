import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createAuthority, type TestAuthority } from "../../../test/support/certificates.ts";
import { commandLine } from "../../../test/support/command-line.ts";
import { prepareSink } from "../../delivery/prepare-sink.ts";
import { SINKS } from "../../sinks/index.ts";

let authority: TestAuthority;
beforeAll(async () => {
  authority = await createAuthority();
});
afterAll(() => authority.remove());

const MQTT = ["mqtt", "host=10.0.0.2", "topic=plant/{source}"];

test("what cannot be meant is answered with what would be right, and nothing is made or kept", async () => {
  const { api, run, write, folder } = await commandLine();
  const one = await authority.issue("one", "DNS:one");
  const two = await authority.issue("two", "DNS:two");
  const password = write("pw", "canary-password\n");
  const refused: readonly (readonly [words: readonly string[], says: string])[] = [
    [[...MQTT, "--password-file", password], "a password needs a user: give username=NAME with it"],
    [[...MQTT, "username=a"], "there is no terminal to type the password of plant on; give it with --password-file FILE"],
    [[...MQTT, "username=a", "--json"], "--json never prompts; give it with --password-file FILE"],
    [[...MQTT, "password=canary-typed"], "give it with --password-file FILE or --ask-password"],
    [[...MQTT, "tls.ca_file=none.pem"], "none.pem does not exist"],
    [[...MQTT, `tls.ca_file=${password}`], "holds no PEM of a certificate"],
    [[...MQTT, `tls.cert_file=${one.key}`, `tls.key_file=${one.key}`], "holds no PEM of a certificate; it looks like a key"],
    [[...MQTT, `tls.cert_file=${one.cert}`, `tls.key_file=${one.cert}`], "without a passphrase; it looks like a certificate"],
    [[...MQTT, `tls.cert_file=${one.cert}`, `tls.key_file=${two.key}`], "is not the key of the certificate"],
    [[...MQTT, `tls.cert_file=${one.cert}`], "tls: cert_file and key_file go together; set both or none"],
    [[...MQTT, "keepalive=1"], "keepalive: expected a duration such as 10s or 500ms, from 1s to 65535s"],
    [[...MQTT, "payload=value"], "payload: value needs a topic with {variable}"],
    [[...MQTT, "retian=true"], "retian: there is no such key; did you mean retain?"],
    [["opcua", "--password-file", password], "a data sink of type opcua has no password of its own; give its users with --user"],
    [["platform", "username=a"], "username: there is no such key"],
  ];
  for (const [words, says] of refused) {
    const { code, out, err } = await run("sink", "add", "plant", ...words);
    expect([code, out, err], words.join(" ")).toEqual([2, "", expect.stringContaining(says)]);
    expect(err).not.toContain("canary");
  }
  expect((await api.send("GET", "/v2/data-sinks")).body["data"]).toEqual([]);
  expect(readdirSync(folder)).not.toContain("sink-certificates");
  // The API refuses what the words do not show: what was kept for it is gone again.
  expect((await run("sink", "add", "x".repeat(201), ...MQTT, "retain=false")).code).toBe(2);
  expect(JSON.parse(readFileSync(join(folder, "sink-options.json"), "utf8"))).toEqual({ version: 1, sinks: {} });
});

test("options of every kind are kept, changed and removed by their keys, and are what the sink then runs with", async () => {
  const { well, run, folder } = await commandLine({ sinks: { plant: { in_flight: 2 } } });
  const kept = () => Object.values(JSON.parse(readFileSync(join(folder, "sink-options.json"), "utf8")).sinks as object)[0] as object;
  const { cert, key } = await authority.issue("collector", "DNS:collector");
  const added = await well(
    "sink",
    "add",
    "plant",
    "mqtt",
    "host=10.0.0.2",
    "topic=p/{source}/{variable}",
    "tls=true",
    "payload=raw",
    "backlog=in_order",
    "in_flight=9",
    "sources=press-*, !press-7",
  );
  const words = "payload=raw backlog=in_order in_flight=9 sources=press-*,!press-7 tls=true";
  expect(added).toContain(`On this machine: ${words}\nThe settings file has in_flight of this sink too, and wins.\n`);
  await well("sink", "set", "plant", `cert_file=${cert}`, `tls.key_file=${key}`, "tls.server_name=broker", "retain=true", "payload=");
  expect(kept()).toMatchObject({
    backlog: "in_order",
    in_flight: 9,
    sources: ["press-*", "!press-7"],
    retain: true,
    tls: { server_name: "broker" },
  });
  expect(kept()).not.toHaveProperty("payload");
  const [{ details, uuid }] = JSON.parse(await well("sink", "list", "--json"));
  const spec = { uuid, name: "plant", type: "mqtt", details, settings: kept(), secrets: {}, publishIntervalUnit: "seconds" } as const;
  expect(await prepareSink(spec, SINKS)).toMatchObject({
    backlog: "in_order",
    filter: { patterns: { sources: ["press-*", "!press-7"] } },
    settings: { retain: true, tls: { server_name: "broker" } },
  });
  await well("sink", "set", "plant", "tls.server_name=");
  expect(kept()).toMatchObject({ tls: expect.not.objectContaining({ server_name: "broker" }) });
  expect((await run("sink", "set", "plant", "tls.key_file=")).err).toContain("cert_file and key_file go together");
  await well("sink", "set", "plant", "tls=false", "retain=", "backlog=", "in_flight=", "sources=");
  expect(JSON.parse(readFileSync(join(folder, "sink-options.json"), "utf8"))).toEqual({ version: 1, sinks: {} });
  expect(readdirSync(join(folder, "sink-certificates"))).toEqual([]);
});

test("a password is kept where secrets are, and goes with the sink", async () => {
  const { well, write, folder, run } = await commandLine();
  const password = write("pw", "canary-password\n");
  await well("sink", "add", "plant", ...MQTT, "username=a", "--password-file", password);
  const [file = ""] = readdirSync(join(folder, "credentials"));
  expect(readFileSync(join(folder, "credentials", file), "utf8")).toBe("canary-password\n");
  expect((await run("sink", "set", "plant")).err).toContain("nothing is given to set");
  await well("sink", "rm", "plant");
  expect(readdirSync(join(folder, "credentials"))).toEqual([]);
});

test("where no collector is, or its file is damaged, that is said before anything is changed", async () => {
  const { api, run, folder, write } = await commandLine();
  write("sink-options.json", "{");
  const damaged = await run("sink", "add", "plant", ...MQTT, "retain=false");
  expect([damaged.code, damaged.err]).toEqual([2, expect.stringContaining("sink-options.json is not JSON")]);
  expect((await api.send("GET", "/v2/data-sinks")).body["data"]).toEqual([]);
  const elsewhere = join(folder, "none");
  const settings = readFileSync(join(folder, "collector.yaml"), "utf8");
  mkdirSync(join(folder, "keys"), { recursive: true });
  writeFileSync(join(folder, "key"), api.adminKey);
  writeFileSync(join(folder, "collector.yaml"), settings.replace(/state_dir: .*/, `state_dir: ${elsewhere}`));
  const laptop = await run("sink", "add", "plant", ...MQTT, "tls=true", "--key-file", join(folder, "key"));
  rmSync(join(folder, "key"));
  expect([laptop.code, laptop.err]).toEqual([
    2,
    expect.stringContaining(`tls: kept on the collector's own machine, and there is no collector here (no folder ${elsewhere})`),
  ]);
});
