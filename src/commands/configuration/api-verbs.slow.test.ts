import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { commandLine } from "../../../test/support/command-line.ts";
import { COLLECTOR, temporaryFolder } from "../../api/server/testing.ts";
import { parseVariableCsv } from "../../configuration/variable-file.ts";
import { VARIABLE_STATUSES, type VariableInput } from "../../model/variable.ts";
import { runCommand, settingsFile } from "../testing.ts";
import { variablesCsv } from "./variables-csv.ts";
import { importPlan } from "./variables-plan.ts";

const CSV = `name;address;type;unit;factor;offset;comment;status
temperature;holding:0;float32;°C;0,1;;Öl;
pressure;holding:2;uint16;bar;;;;EXPLORATION
`;

test("a data source is added, listed, changed and removed by its name, on a machine of its name", async () => {
  const { api, well, run } = await commandLine();
  await well("source", "add", "press-1", "modbus_tcp", "host=10.0.0.5", "--interval", "5s", "--limit", "9", "--note", "left");
  const { body } = await api.send("GET", "/v2/data-sources");
  expect(body["data"]?.[0]).toMatchObject({
    name: "press-1",
    collector: COLLECTOR,
    readout_interval: 5,
    readout_limit: 9,
    note: "left",
    details: { type: "modbus_tcp", host: "10.0.0.5", port: 502 },
  });
  const machines = (await api.send("GET", "/ext/v1/machines")).body["data"];
  expect(machines).toMatchObject([{ name: "press-1", uuid: body["data"]?.[0]?.["machine"] }]);
  expect((await well("source", "list")).split("\n").slice(0, 2)).toEqual([
    "NAME     TYPE        ENDPOINT      MACHINE  INTERVAL  LIMIT",
    "press-1  modbus_tcp  10.0.0.5:502  press-1  5 s           9",
  ]);
  await well("source", "add", "press-2", "s7", "host=10.0.0.6", "--machine", "press-1");
  expect((await api.send("GET", "/ext/v1/machines")).body["data"]).toHaveLength(1);
  await well("source", "set", "press-1", "port=1502", "--name", "press-left", "--note", "", "--limit", "none");
  expect(JSON.parse(await well("source", "list", "--json"))).toMatchObject([
    { name: "press-left", note: null, readout_limit: null, details: { host: "10.0.0.5", port: 1502 } },
    { name: "press-2", type: "s7", details: { slot: 2 } },
  ]);
  expect((await run("source", "add", "press-2", "s7", "host=x")).code).toBe(2);
  await well("source", "rm", "press-2");
  const gone = await run("source", "rm", "press-2");
  expect([gone.code, gone.err]).toEqual([2, "collector: there is no data source press-2; there are: press-left\n"]);
});

test("every type is added from words; passwords come from files and are shown nowhere", async () => {
  const { api, well, run, write } = await commandLine();
  const password = write("pw.txt", "canary-password\nsecond line\n");
  await well("source", "add", "a", "opcua", "endpoint_url=opc.tcp://10.0.0.7:4841/ua", "username=reader", "--password-file", password);
  await well("source", "add", "b", "s7plus", "host=h", "port=102", "--password-file", password);
  await well("source", "add", "c", "vendor_gateway", "host=h", "port=1", "protocol_details.protocol=PVI", "protocol_details.path=a/b");
  await well("source", "add", "d", "plastcontrol", "host=h", "port=1");
  await well("source", "add", "e", "fins", "host=h", "local_address=0.1.0", "remote_address=0.2.0");
  await well("source", "add", "f", "vendor_b", "host=h", "machine=C5", "initialization_mode=Default");
  await well(
    "source",
    "add",
    "g",
    "opcua",
    "endpoint_url=opc.tcp://h",
    "security_settings.security_mode=Sign",
    "security_settings.endpoint_security_policy=Basic256Sha256",
  );
  for (const type of ["vendor_a", "modbus_tcp", "s7", "odac"]) await well("source", "add", type, type, "host=h");
  const listed = await well("source", "list", "--json");
  expect(listed).not.toContain("canary");
  expect(JSON.parse(listed)).toMatchObject([
    { details: { host: "10.0.0.7", port: 4841, user_identity: { type: "UserNamePassword", username: "reader" } } },
    { details: { password: { type: "configured" } } },
    { details: { protocol_details: { protocol: "PVI", path: "a/b" } } },
    { details: { readout_mode: { type: "active" } } },
    { details: { target_plc: "Cs1OrNewer" } },
    { details: { machine: "C5" } },
    {
      details: {
        port: 4840,
        security_settings: { security_mode: "Sign", token_security_policy: "None" },
        user_identity: { type: "Anonymous" },
      },
    },
    ...Array(4).fill({ details: { host: "h" } }),
  ]);
  // One field of an object inside: the others stay as they are.
  await well("source", "set", "g", "security_settings.token_security_policy=Basic256Sha256");
  expect(JSON.parse(await well("source", "list", "--json"))[6].details.security_settings).toEqual({
    security_mode: "Sign",
    endpoint_security_policy: "Basic256Sha256",
    token_security_policy: "Basic256Sha256",
  });
  const secrets = await api.send("GET", `/ext/v1/secrets?collector=${COLLECTOR}`, undefined, { authorization: api.collectorKey });
  expect(Object.values(secrets.body["secrets"] ?? {})).toEqual([{ password: "canary-password" }, { password: "canary-password" }]);
  const typed = await run("source", "add", "h", "s7plus", "host=h", "port=1", "password.value=canary-typed");
  expect([typed.code, typed.err.includes("does not belong on a command line"), typed.err.includes("canary")]).toEqual([2, true, false]);
});

test("a change that a stored password does not follow: the person is asked for it, or told how to give it", async () => {
  const { api, run, runWith, well, write } = await commandLine();
  const file = write("pw", "canary-old\n");
  await well("source", "add", "ua", "opcua", "endpoint_url=opc.tcp://h:4840", "username=reader", "--password-file", file);
  await well("source", "add", "plc", "s7plus", "host=h", "port=102", "--password-file", file);
  const stored = async () => {
    const sent = await api.send("GET", `/ext/v1/secrets?collector=${COLLECTOR}`, undefined, { authorization: api.collectorKey });
    return Object.values(sent.body["secrets"] ?? {}).map((one) => one["password"]);
  };
  const hosts = async () =>
    (JSON.parse(await well("source", "list", "--json")) as { details: { host: string } }[]).map(({ details }) => details.host);
  for (const name of ["ua", "plc"]) {
    // Nobody to ask: what is missing, why, and the option that gives it.
    const refused = await run("source", "set", name, "host=other");
    expect([refused.code, refused.out]).toEqual([2, ""]);
    expect(refused.err).toMatch(/password: send the password too, or remove it: the stored one does not follow a change of host\n/);
    expect(refused.err).toContain(`there is no terminal to type the password of ${name} on; give it with --password-file FILE`);
    const json = await run("source", "set", name, "host=other", "--json");
    expect([json.code, json.err]).toEqual([2, expect.stringContaining("--json never prompts; give it with --password-file FILE")]);
  }
  expect([await hosts(), await stored()]).toEqual([
    ["h", "h"],
    ["canary-old", "canary-old"],
  ]);

  const typed = await runWith({ typed: "canary-typed" }, "source", "set", "ua", "host=other");
  expect([typed.code, typed.out]).toEqual([0, "ua: changed\n"]);
  await well("source", "set", "plc", "host=other", "--password-file", write("new", "canary-file\n"));
  expect([await hosts(), (await stored()).toSorted()]).toEqual([
    ["other", "other"],
    ["canary-file", "canary-typed"],
  ]);
  // What keeps the password where it is asks for nothing.
  await well("source", "set", "ua", "security_mode=SignAndEncrypt", "endpoint_security_policy=Basic256Sha256", "--note", "n");
  await well("source", "set", "plc", "destination_tsap=SIMATIC-ROOT-HMI");

  // A file of sources has no passwords: the entry says what to do, the others are taken.
  const sources = await well("source", "export");
  const imported = await run("source", "import", write("sources.yaml", sources.replaceAll("host: other", "host: third")));
  expect(imported.code).toBe(1);
  expect(imported.err).toContain("change it with collector source set plc key=value… --password-file FILE");
});

test("opcua by name: security by its own words, a password that is typed, and what was filled in is reported", async () => {
  const { api, well, runWith } = await commandLine();
  const told = await runWith(
    { typed: "canary-typed" },
    ...[
      "source",
      "add",
      "a",
      "opcua",
      "endpoint_url=opc.tcp://10.0.0.7:4841/ua",
      "endpoint_security_policy=Basic256Sha256",
      "username=reader",
    ],
  );
  expect([told.code, told.err]).toEqual([0, "Password of reader (not shown): \n"]);
  expect(told.out.split("\n")[1]).toBe(
    "Defaults: host=10.0.0.7 port=4841 security_settings.security_mode=SignAndEncrypt " +
      "security_settings.token_security_policy=Basic256Sha256",
  );
  expect(await well("source", "add", "b", "opcua", "endpoint_url=opc.tcp://h")).toContain(
    "Defaults: host=h port=4840 security_settings.security_mode=None security_settings.endpoint_security_policy=None " +
      "security_settings.token_security_policy=None user_identity.type=Anonymous\n",
  );
  expect(await well("source", "add", "c", "plastcontrol", "host=h", "port=1")).toContain("Defaults: readout_mode.type=active");
  expect(await well("source", "add", "d", "s7", "host=h")).not.toContain("Defaults:");
  expect(await well("source", "add", "e", "vendor_gateway", "host=h", "port=1", "protocol=OPC_DA", "server_name=S")).not.toContain(
    "Defaults:",
  );
  const plc = await runWith({ typed: "canary-plc" }, "source", "add", "f", "s7plus", "host=h", "port=102", "--ask-password");
  expect([plc.code, plc.err]).toEqual([0, "Password (not shown): \n"]);
  const weaker = await runWith({ typed: "canary-1" }, "source", "set", "a", "security_mode=Sign");
  expect([weaker.code, weaker.err]).toEqual([
    0,
    expect.stringMatching(/does not follow a change of security_settings\.security_mode\nPassword of a \(not shown\): \n$/),
  ]);
  // Another user has another password.
  expect((await runWith({ typed: "canary-2" }, "source", "set", "a", "username=other")).code).toBe(0);
  expect(JSON.parse(await well("source", "list", "--json"))).toMatchObject([
    {
      details: {
        security_settings: { security_mode: "Sign", endpoint_security_policy: "Basic256Sha256", token_security_policy: "Basic256Sha256" },
        user_identity: { type: "UserNamePassword", username: "other" },
      },
    },
    { details: { user_identity: { type: "Anonymous" } } },
    { details: { readout_mode: { type: "active" } } },
    {},
    { details: { protocol_details: { protocol: "OPC_DA", server_name: "S" } } },
    { details: { password: { type: "configured" } } },
  ]);
  const server = await runWith({ typed: "canary-sink" }, "sink", "add", "server", "opcua", "port=4841", "--user", "scada");
  expect([server.code, server.err]).toEqual([0, "Password of scada (not shown): \n"]);
  const secrets = await api.send("GET", `/ext/v1/secrets?collector=${COLLECTOR}`, undefined, { authorization: api.collectorKey });
  expect(
    Object.values(secrets.body["secrets"] ?? {})
      .map((one) => JSON.stringify(one))
      .sort(),
  ).toEqual(['{"password":"canary-2"}', '{"password":"canary-plc"}', '{"users.scada.password":"canary-sink"}']);
  for (const { out, err } of [told, plc, server, weaker]) expect(out + err).not.toContain("canary");
  for (const [words, options, said] of [
    [
      ["source", "add", "g", "opcua", "endpoint_url=opc.tcp://h", "username=x"],
      {},
      "no terminal to type the password of x on; give it with --password-file",
    ],
    [["source", "add", "g", "opcua", "endpoint_url=opc.tcp://h", "username=x"], { typed: "" }, "the password of x is empty"],
    [["source", "add", "g", "s7", "host=h", "--ask-password"], { typed: "y" }, "a data source of type s7 has no password"],
    [["sink", "add", "g", "opcua", "--user", "x"], {}, "no terminal to type the password of x on; give it with --user x=FILE"],
    [["sink", "add", "g", "opcua", "--user", "=x"], {}, "--user =x: expected NAME"],
    [
      ["source", "add", "g", "opcua", "endpoint_url=opc.tcp://h", "security_mode=Sign"],
      {},
      "requires an endpoint_security_policy other than None",
    ],
  ] as const) {
    const { code, err } = await runWith(options, ...words);
    expect([code, err], words.join(" ")).toEqual([2, expect.stringContaining(said)]);
  }
});

test("a wrong word is answered with the right one", async () => {
  const { run } = await commandLine();
  for (const [words, said] of [
    [["add", "x", "modbus"], "modbus is not a type of data source; did you mean modbus_tcp?"],
    [["add", "x", "modbus_tcp"], "host: is required"],
    [["add", "x", "s7plus", "host=h", "port=1", "password.value=x"], "give it with --password-file FILE or --ask-password"],
    [["add", "x", "modbus_tcp", "host=h", "prot=1"], "prot: there is no such key; did you mean port?"],
    [["add", "x", "modbus_tcp", "host=h", "port=high"], 'port: "high" must be a number'],
    [["add", "x", "modbus_tcp", "10.0.0.5"], '"10.0.0.5": must be key=value'],
    [["add", "x", "modbus_tcp", "host=h", "port=70000"], "port: "],
    [["add", "x", "modbus_tcp", "host=h", "--interval", "250ms"], "whole seconds"],
    [["add", "x", "modbus_tcp", "host=h", "--interval", "soon"], "--interval soon: expected a duration"],
    [["add", "x", "modbus_tcp", "host=h", "--limit", "few"], "--limit few: expected a number"],
    [["add", "x", "modbus_tcp", "host=h", "--password-file", "/nowhere/pw"], "--password-file: /nowhere/pw does not exist"],
    [["set", "x", "host=h"], "there is no data source x"],
  ] as const) {
    const { code, err } = await run("source", ...words);
    expect([code, err], words.join(" ")).toEqual([2, expect.stringContaining(said)]);
  }
});

test("data sinks of every type; a list of users is taken whole", async () => {
  const { api, well, run, write } = await commandLine();
  expect(await run("sink", "add", "plant", "mqtt", "host=h", "topic=t", "password=canary")).toMatchObject({
    code: 2,
    err: expect.stringMatching(/password: a password does not belong on a command line.*--password-file FILE or --ask-password/),
  });
  const [one, two] = [write("a", "canary-a\n"), write("b", "canary-b")];
  await well("sink", "add", "plant", "mqtt", "host=10.0.0.2", "topic=plant/{source}");
  await well(
    "sink",
    "add",
    "server",
    "opcua",
    "port=4841",
    "security_modes=None,Sign",
    "--user",
    `reader=${one}`,
    "--user",
    `other=${two}`,
  );
  await well("sink", "add", "platform", "platform");
  await well("sink", "set", "plant", "publish_interval=5", "--name", "hall");
  expect((await well("sink", "list")).split("\n")).toEqual([
    "NAME      TYPE      DETAILS",
    expect.stringMatching(/^hall +mqtt +host=10\.0\.0\.2 .*topic=plant\/\{source\}.*publish_interval=5/),
    expect.stringMatching(/^server +opcua .*security_modes=None,Sign .*users=reader,other/),
    "platform  platform  publish_interval=1",
    "",
  ]);
  await well("sink", "set", "server", "--user", `reader=${two}`);
  const secrets = await api.send("GET", `/ext/v1/secrets?collector=${COLLECTOR}`, undefined, { authorization: api.collectorKey });
  expect(Object.values(secrets.body["secrets"] ?? {})).toEqual([{ "users.reader.password": "canary-b" }]);
  expect((await run("sink", "add", "hall", "mqtt", "host=h", "topic=a")).err).toContain(
    "there is a data sink hall already; collector sink set hall changes it",
  );
  expect((await run("sink", "set", "hall", "--user", `x=${one}`)).err).toContain("has no users");
  await well("sink", "rm", "platform");
  expect(JSON.parse(await well("sink", "list", "--json"))).toHaveLength(2);
});

test("variables are loaded from a CSV file, told apart by name, written out again, and changed one by one", async () => {
  const { well, run, write } = await commandLine();
  await well("source", "add", "press-1", "modbus_tcp", "host=h");
  const file = write("v.csv", CSV);
  expect(await well("variables", "import", "press-1", file)).toBe("press-1: 2 created, 0 changed, 0 deleted, 0 unchanged\n");
  expect(await well("variables", "import", "press-1", file)).toBe("press-1: 0 created, 0 changed, 0 deleted, 2 unchanged\n");
  await well("variables", "add", "press-1", "speed", "holding:5:uint16", "--unit", "rpm");
  await well("variables", "set", "press-1", "pressure", "--factor", "0,5", "--status", "active", "--name", "p");
  expect(JSON.parse(await well("variables", "list", "press-1", "--json"))).toMatchObject([
    { name: "temperature", address: "holding:0", type: "float32", unit: "°C", scaling: { factor: 0.1, offset: 0 }, comment: "Öl" },
    { name: "p", status: "ACTIVE", scaling: { factor: 0.5, offset: 0 } },
    { name: "speed", address: "holding:5", type: "uint16", unit: "rpm" },
  ]);
  const exported = write("out.csv", "");
  await well("variables", "export", "press-1", exported);
  expect(await well("variables", "import", "press-1", exported)).toContain("0 created, 0 changed, 0 deleted, 3 unchanged");
  const broken = write("broken.csv", `${CSV}bad;;;;;;;\nlast;holding:9;;;;;;\n`);
  const partly = await run("variables", "import", "press-1", broken, "--replace");
  expect([partly.code, partly.out]).toEqual([1, "press-1: 2 created, 0 changed, 0 deleted, 1 unchanged\n"]);
  expect(partly.err).toContain(`${broken}:4: address: is empty`);
  expect(await well("variables", "import", "press-1", file, "--replace")).toContain("0 created, 0 changed, 3 deleted, 2 unchanged");
  await well("variables", "rm", "press-1", "temperature", "pressure");
  expect(await well("variables", "list", "press-1")).toContain("has no variables");
  expect((await run("variables", "import", "press-1", "/nowhere.csv")).code).toBe(2);
  expect((await run("variables", "add", "press-1", "x", "holding:0", "--type", "float12")).err).toContain("expected a type");
});

test("sources and sinks are written to a file and brought back by name, here and to another collector", async () => {
  const here = await commandLine();
  const password = here.write("pw", "canary-password");
  await here.well("source", "add", "press-1", "modbus_tcp", "host=h", "--interval", "3s", "--machine", "Press");
  await here.well("source", "add", "plc", "s7plus", "host=h", "port=102", "--password-file", password);
  await here.well("source", "add", "ua", "opcua", "endpoint_url=opc.tcp://h", "username=u", "--password-file", password);
  await here.well("sink", "add", "plant", "mqtt", "host=b", "topic=t");
  const [sources, sinks] = [join(here.folder, "sources.yaml"), join(here.folder, "sinks.yaml")];
  await here.well("source", "export", sources);
  await here.well("sink", "export", sinks);
  expect(readFileSync(sources, "utf8")).not.toContain("canary");
  const before = await here.well("source", "list", "--json");
  expect(await here.well("source", "import", sources)).toBe("press-1: changed\nplc: changed\nua: changed\n");
  expect(await here.well("source", "list", "--json")).toBe(before);
  expect(await here.well("sink", "import", sinks)).toBe("plant: changed\n");

  const there = await commandLine();
  const imported = await there.run("source", "import", sources);
  // What needs a password that is not in the file cannot be made; the others are.
  expect([imported.code, imported.out]).toEqual([1, "press-1: created\nplc: created\n"]);
  expect(imported.err).toMatch(/plc: its password is not in the file.*ua: .*password/s);
  expect(await there.well("sink", "import", sinks)).toBe("plant: created\n");
  expect(JSON.parse(await there.well("source", "list", "--json"))).toMatchObject([
    { name: "press-1", readout_interval: 3 },
    { name: "plc" },
  ]);
  const wrong = there.write("wrong.yaml", "- name: x\n- details: {type: s7}\n");
  expect((await there.run("source", "import", wrong)).err).toMatch(/entry 1: details: .*entry 2: name: /s);
  expect((await there.run("source", "import", there.write("no.yaml", "a: [1"))).err).toContain("is not valid YAML");
});

test("an API that is not there, or refuses the key, is reported with what to do", async () => {
  const folder = temporaryFolder();
  const nobody = settingsFile(folder, { collector: COLLECTOR, embedded_api: { listen: "127.0.0.1:1" } });
  const keyless = await runCommand("source", "list", "--config", nobody);
  expect([keyless.code, keyless.err]).toEqual([4, expect.stringContaining("admin.key")]);
  const key = join(folder, "key");
  writeFileSync(key, "canary-key\n");
  const gone = await runCommand("source", "list", "--config", nobody, "--key-file", key);
  expect([gone.code, gone.err]).toEqual([
    4,
    expect.stringMatching(/the collector that carries this API does not run: nothing listens on .*api\.sock \(ENOENT\); start it/),
  ]);
  const { run } = await commandLine();
  const refused = await run("source", "list", "--key-file", key);
  expect([refused.code, refused.err]).toEqual([2, expect.stringContaining("the API key is refused (401)")]);
  expect(refused.err).not.toContain("canary");
});

test("what is exported as CSV is read back the same, whatever the texts", () => {
  const text = fc
    .string({ unit: "grapheme", minLength: 1, maxLength: 40 })
    .map((value) => value.replaceAll(/[\p{Cc}\s]/gu, "_"))
    .filter((value) => value.isWellFormed() && value !== "");
  const variable = fc.record({
    name: text,
    address: text,
    type: fc.constantFrom(null, "uint16", "string(20)", "float32[10]"),
    unit: fc.option(text),
    scaling: fc.option(fc.record({ factor: fc.double({ noNaN: true, noDefaultInfinity: true }), offset: fc.integer() })),
    comment: fc.option(text),
    status: fc.constantFrom(...VARIABLE_STATUSES),
  });
  fc.assert(
    fc.property(fc.uniqueArray(variable, { selector: ({ name }) => name, maxLength: 10 }), (variables: VariableInput[]) => {
      const { variables: read, problems } = parseVariableCsv(Buffer.from(variablesCsv(variables)));
      expect(problems).toEqual([]);
      expect(read).toEqual(
        variables.map((one) => ({ ...one, scaling: one.scaling && { factor: one.scaling.factor + 0, offset: one.scaling.offset } })),
      );
    }),
  );
});

test("an import's plan brings what is there to what is wanted", () => {
  const input = (name: string, address = "a"): VariableInput => ({
    name,
    address,
    type: null,
    unit: null,
    scaling: null,
    comment: null,
    status: "ACTIVE",
  });
  const present = ["a", "b", "c"].map((name) => ({ uuid: `uuid-${name}`, data_source: "s", ...input(name) }));
  const plan = importPlan([input("a"), input("b", "new"), input("d")], present, true);
  expect(plan).toMatchObject({
    create: [{ name: "d" }],
    change: [{ uuid: "uuid-b", fields: { address: "new" } }],
    remove: [{ name: "c" }],
    same: 1,
  });
  expect(importPlan([input("a")], present, false).remove).toEqual([]);
});
