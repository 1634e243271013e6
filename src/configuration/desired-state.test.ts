import { describe, expect, it } from "vitest";
import type { DataSource } from "../model/resources.ts";
import { codesOf, textsOf } from "../model/testing/warnings.ts";
import type { Variable } from "../model/variable.ts";
import { desiredSources } from "./desired-sources.ts";
import { type DesiredStateInput, desiredState } from "./desired-state.ts";
import { localOptions } from "./local-options.ts";
import type { FileSecret, SecretFiles } from "./secret-files.ts";
import type { VariableFiles } from "./variable-files.ts";

const uuid = (n: number) => `00000000-0000-4000-8000-00000000000${n}`;
const source = (n: number, name: string): DataSource => ({
  uuid: uuid(n),
  type: "modbus_tcp",
  name,
  collector: uuid(9),
  machine: uuid(8),
  manufacturer: null,
  device_model: null,
  note: null,
  readout_interval: 10,
  readout_limit: null,
  details: null,
});
const variable = (n: number, name: string): Variable => ({
  uuid: uuid(n + 5),
  data_source: uuid(n),
  name,
  address: "holding:0",
  type: null,
  unit: null,
  scaling: null,
  comment: null,
  status: "ACTIVE",
});
const noFiles: VariableFiles = { bySource: new Map(), problems: [] };
const noSecret: SecretFiles = new Map();
const fileOf = (secret: FileSecret): SecretFiles => new Map([["/p", secret]]);

describe("desiredSources", () => {
  it("gives each source its own variables, and a local file's before the API's", async () => {
    const files: VariableFiles = {
      ...noFiles,
      bySource: new Map([[uuid(2), { variables: [variable(2, "local")], file: "/v/b.csv" }]]),
      problems: [{ file: "/v/b.csv", line: 3, source: uuid(2), message: "factor: expected a number" }],
    };
    const configuration = { sources: [source(1, "a"), source(2, "b")], variables: [variable(1, "api"), variable(2, "api")], secrets: {} };
    const [a, b] = await desiredSources(configuration, files, { sources: {}, readout_interval_unit: "seconds" }, noSecret);
    expect(a?.variables.map((v) => v.name)).toEqual(["api"]);
    expect(b?.variables.map((v) => v.name)).toEqual(["local"]);
    expect(codesOf(b?.warnings)).toContain("variable_file_wrong");
    expect(codesOf(b?.warnings)).toContain("variables_shadowed");
    expect(textsOf(b?.warnings)).toEqual([
      "/v/b.csv:3: factor: expected a number",
      "/v/b.csv wins over the API: its variables run (1), those of the API do not (1), until the file is removed; `collector variables list b --local` shows what is in it",
    ]);
    expect(textsOf(a?.warnings)).toEqual([]);
  });

  it("takes the type of the details, and says in one sentence where the record names another one", async () => {
    const details = { type: "s7", host: "h" };
    const configuration = {
      sources: [
        { ...source(1, "a"), details },
        { ...source(2, "b"), type: "s7", details },
      ],
      variables: null,
      secrets: {},
    };
    const desired = await desiredSources(configuration, noFiles, { sources: {}, readout_interval_unit: "seconds" }, noSecret);
    expect(desired.map(({ record, warnings }) => [record.type, textsOf(warnings)])).toEqual([
      ["s7", [expect.stringMatching(/^type is "modbus_tcp", and details\.type is "s7", which is taken/)]],
      ["s7", []],
    ]);
    expect(desired[1]?.record).toBe(configuration.sources[1]);
  });

  it("says nothing of a file where the API has no variables of that source", async () => {
    const files: VariableFiles = { ...noFiles, bySource: new Map([[uuid(2), { variables: [variable(2, "local")], file: "/v/b.csv" }]]) };
    for (const variables of [null, [], [variable(1, "api")]]) {
      const configuration = { sources: [source(2, "b")], variables, secrets: {} };
      const [b] = await desiredSources(configuration, files, { sources: {}, readout_interval_unit: "seconds" }, noSecret);
      expect(textsOf(b?.warnings)).toEqual([]);
    }
  });

  it("takes a local password before the API's, and names one that cannot be read", async () => {
    const configuration = { sources: [source(1, "a")], variables: null, secrets: { [uuid(1)]: { password: "from-api" } } };
    const settings = { sources: { a: { password_file: "/p" } }, readout_interval_unit: "seconds" as const };
    expect((await desiredSources(configuration, noFiles, settings, fileOf({ secret: "local" })))[0]).toMatchObject({
      secrets: { password: "local" },
      missingSecret: undefined,
    });
    expect((await desiredSources(configuration, noFiles, settings, fileOf({ problem: "/p: no such file" })))[0]?.missingSecret).toBe(
      "/p: no such file",
    );
    expect((await desiredSources(configuration, noFiles, { ...settings, sources: {} }, noSecret))[0]).toMatchObject({
      secrets: { password: "from-api" },
      missingSecret: undefined,
    });
  });
});

describe("desiredState", () => {
  const opcua = {
    ...source(1, "a"),
    type: "opcua",
    details: { type: "opcua", user_identity: { type: "UserNamePassword", username: "operator" } },
  };
  const mqtt = { uuid: uuid(4), name: "broker", collector: uuid(9), type: "mqtt", details: { type: "mqtt", username: "press" } };
  const input = (rest: Partial<DesiredStateInput> = {}): DesiredStateInput => ({
    desired: { sources: [opcua as never, source(2, "b")], sinks: [mqtt as never], variables: [variable(2, "v")], secrets: {} },
    files: noFiles,
    credentials: { secretOf: () => undefined, userSecretsOf: () => new Map() },
    withheld: new Map(),
    secretFiles: noSecret,
    profileFiles: new Map(),
    settings: { bindings: {}, sources: {}, sinks: {}, readout_interval_unit: "seconds", publish_interval_unit: "seconds" },
    api: { url: "https://platform.example", keyFile: "/k", insecure: false, embedded: false },
    ...rest,
  });

  it("names the password that a source or a sink needs and does not have", async () => {
    const { sources, sinks } = await desiredState(input());
    expect(sources.map(({ missingSecret }) => missingSecret)).toEqual([expect.stringContaining("operator"), undefined]);
    expect(sinks.map(({ missingSecret }) => missingSecret)).toEqual([expect.stringContaining("press")]);
    expect(sources[1]?.variables.map(({ name }) => name)).toEqual(["v"]);
  });

  it.each([
    ["an s7plus password that is configured and not on this machine", { type: "s7plus", password: { type: "configured" } }, {}],
    ["an s7plus user without a password", { type: "s7plus", password: { type: "none" } }, { user: "otto" }],
    ["a gateway without its key", { type: "vendor_gateway" }, { security: "psk" }],
  ])("%s is a missing secret, and one that may come is awaited", async (_, details, local) => {
    const listed = { ...source(1, "a"), type: details.type, details };
    const desired = { ...input().desired, sources: [listed as never], sinks: [] };
    const settings = { ...input().settings, sources: { a: local } };
    const [missing] = (await desiredState(input({ desired, settings }))).sources;
    expect(missing?.missingSecret).toContain("is not on this machine; type `sudo collector secret set a`");
    const [awaited] = (await desiredState(input({ desired: { ...desired, areSecretsAwaited: true }, settings }))).sources;
    expect(awaited?.awaitedSecret).toContain("has not answered yet");
    const [known] = (await desiredState(input({ desired: { ...desired, secrets: { [uuid(1)]: { password: "p" } } }, settings }))).sources;
    expect([known?.missingSecret, known?.awaitedSecret]).toEqual([undefined, undefined]);
  });

  it("a hosted server whose user has no password here is a missing secret, before anything opens", async () => {
    const server = { ...mqtt, name: "server", type: "opcua", details: { type: "opcua", users: [{ username: "scada" }] } };
    const desired = { ...input().desired, sources: [], sinks: [server as never] };
    expect((await desiredState(input({ desired }))).sinks[0]?.missingSecret).toBe(
      'the password of user "scada" is not on this machine; type `sudo collector secret set server/users/scada`',
    );
    const credentials = { secretOf: () => undefined, userSecretsOf: () => new Map([["scada", "p"]]) };
    expect((await desiredState(input({ desired, credentials }))).sinks[0]?.missingSecret).toBeUndefined();
  });

  it("takes a data sink's type from its details too", async () => {
    const sinks = [{ ...mqtt, type: "opcua" } as never];
    expect((await desiredState(input({ desired: { ...input().desired, sinks } }))).sinks).toMatchObject([
      { type: "mqtt", notes: [{ code: "types_contradict", text: expect.stringContaining('type is "opcua", and details.type is "mqtt"') }] },
    ]);
  });

  it("waits for passwords that the API may still give, and notes those of this machine that differ from its own", async () => {
    const waiting = await desiredState(input({ desired: { ...input().desired, areSecretsAwaited: true } }));
    for (const entry of [waiting.sources[0], waiting.sinks[0]]) {
      expect(entry).toMatchObject({ awaitedSecret: expect.stringContaining("has not answered yet") });
      expect(entry?.missingSecret).toBeUndefined();
    }
    expect(waiting.sources[1]?.awaitedSecret).toBeUndefined();
    const desired = { ...input().desired, secrets: { [uuid(1)]: { password: "api" }, [uuid(4)]: { password: "api" } } };
    const credentials = { secretOf: () => "machine", userSecretsOf: () => new Map() };
    const { sources, sinks } = await desiredState(input({ desired, credentials }));
    expect(sources.map(({ warnings }) => textsOf(warnings))).toEqual([[expect.stringContaining("sudo collector secret rm a")], []]);
    expect(codesOf(sinks[0]?.notes)).toContain("secret_overridden");
    expect(textsOf(sinks[0]?.notes)).toEqual([expect.stringContaining("sudo collector secret rm broker")]);
  });

  it("takes a password file before this machine's secrets, and these before the API's", async () => {
    const desired = { ...input().desired, secrets: { [uuid(1)]: { password: "api" }, [uuid(4)]: { password: "api" } } };
    const credentials: DesiredStateInput["credentials"] = {
      secretOf: (entry) => (entry.name === "a" ? undefined : "machine"),
      userSecretsOf: () => new Map(),
    };
    const remote = await desiredState(input({ desired, credentials }));
    expect([...remote.sources, ...remote.sinks].map(({ secrets }) => secrets["password"])).toEqual(["api", "machine", "machine"]);
    const settings = { ...input().settings, sinks: { broker: { password_file: "/p" } } };
    const local = await desiredState(input({ desired, credentials, settings, secretFiles: fileOf({ secret: "file" }) }));
    expect(local.sinks[0]).toMatchObject({ secrets: { password: "file" }, settings: { password_file: "/p" } });
    const broken = await desiredState(input({ desired, credentials, settings, secretFiles: fileOf({ problem: "/p: no such file" }) }));
    expect(broken.sinks[0]?.missingSecret).toBe("/p: no such file");
  });
});

describe("a password of this machine that is withheld", () => {
  const details = { type: "opcua", host: "10.0.0.66", port: 4840, user_identity: { type: "UserNamePassword", username: "operator" } };
  const mqtt = {
    uuid: uuid(4),
    name: "broker",
    collector: uuid(9),
    type: "mqtt",
    details: { type: "mqtt", host: "10.0.0.66", port: 1883 },
  };
  const moved = { ...source(1, "a"), type: "opcua", details };
  const place = { type: "opcua", host: "10.0.0.66", port: 4840, endpoint_url: null, user: "operator", security: null };
  const withheld = new Map(
    [moved, mqtt].map(({ uuid: one, name }) => [
      one,
      { uuid: one, name, secret: `secret: ${name}`, was: { ...place, host: "10.0.0.5" }, now: place, changed: ["host"] },
    ]),
  );
  const input = (secrets: DesiredStateInput["desired"]["secrets"]): DesiredStateInput => ({
    desired: { sources: [moved as never], sinks: [mqtt as never], variables: [], secrets },
    files: noFiles,
    credentials: { secretOf: () => "machine", userSecretsOf: () => new Map() },
    withheld,
    secretFiles: fileOf({ secret: "file" }),
    profileFiles: new Map(),
    settings: {
      bindings: {},
      sources: { a: { password_file: "/p" } },
      sinks: { broker: { password_file: "/p" } },
      readout_interval_unit: "seconds",
      publish_interval_unit: "seconds",
    },
    api: { url: "https://platform.example", keyFile: "/k", insecure: false, embedded: false },
  });

  it("is in nothing that runs, whether it is stored or in a file, and the entry says so", async () => {
    const { sources, sinks } = await desiredState(input({}));
    for (const entry of [...sources, ...sinks]) {
      expect(entry.secrets).toEqual({});
      expect(entry.withheldSecret).toMatch(
        /is for 10\.0\.0\.5:4840 as operator and is withheld from 10\.0\.0\.66:4840 .*secret confirm (a|broker)`$/,
      );
      expect([entry.missingSecret, entry.awaitedSecret]).toEqual([undefined, undefined]);
    }
  });

  it("leaves the API's own password at work, with a note", async () => {
    const { sources, sinks } = await desiredState(input({ [uuid(1)]: { password: "api" }, [uuid(4)]: { password: "api" } }));
    for (const entry of [...sources, ...sinks]) expect([entry.secrets, entry.withheldSecret]).toEqual([{ password: "api" }, undefined]);
    expect(textsOf(sources[0]?.warnings)).toEqual([expect.stringContaining("secret confirm a")]);
    expect(textsOf(sinks[0]?.notes)).toEqual([expect.stringContaining("secret confirm broker")]);
  });
});

describe("localOptions", () => {
  it("finds an entry by uuid in either case, else by name, and nothing by the names of objects' own properties", () => {
    const entries = { [uuid(1).toUpperCase()]: { unit: 1 }, press: { unit: 2 } };
    expect(localOptions(entries, { uuid: uuid(1), name: "press" })).toEqual({ unit: 1 });
    expect(localOptions(entries, { uuid: uuid(2), name: "press" })).toEqual({ unit: 2 });
    expect(localOptions(entries, { uuid: uuid(2), name: "constructor" })).toEqual({});
    expect(localOptions(entries, { uuid: uuid(2), name: null })).toEqual({});
  });
});
