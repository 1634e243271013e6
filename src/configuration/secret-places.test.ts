import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import fc from "fast-check";
import { expect, onTestFinished, test } from "vitest";
import { recordingLog } from "../api/server/testing.ts";
import { silentLog } from "../model/context.ts";
import { SECURITY_MODES, SECURITY_POLICIES } from "../model/details.ts";
import { placeChanges, type SecretPlace, secretPlace } from "../model/secret-place.ts";
import {
  judgeSecrets,
  readSecretPlaces,
  SecretPlacesFile,
  type SecretUse,
  withheldWords,
  withoutSecret,
  withPlace,
} from "./secret-places.ts";

const STRONG = { security_mode: "SignAndEncrypt", endpoint_security_policy: "Basic256Sha256", token_security_policy: "Basic256Sha256" };
const OPCUA = {
  type: "opcua",
  host: "10.0.0.5",
  port: 4840,
  endpoint_url: "opc.tcp://plc:4840/ua",
  security_settings: STRONG,
  user_identity: { type: "UserNamePassword", username: "reader" },
};
const placeOf = (details: unknown): SecretPlace => {
  const place = secretPlace(details);
  if (!place) throw new Error("no place");
  return place;
};
const use = (details: object, rest: Partial<SecretUse> = {}): SecretUse => ({
  uuid: "u-1",
  name: "press-1",
  secret: "secret: press-1",
  place: placeOf(details),
  networks: [],
  ...rest,
});
const first = judgeSecrets([use(OPCUA)], new Map()).places;

/** Each takes the password elsewhere, gives it out as another's, or protects it less. */
const MOVED: readonly (readonly [field: string, change: object])[] = [
  ["host", { host: "10.0.0.66" }],
  ["port", { port: 4841 }],
  ["endpoint_url", { endpoint_url: "opc.tcp://10.0.0.66:4840" }],
  ["user_identity.username", { user_identity: { type: "UserNamePassword", username: "admin" } }],
  ["security_settings.security_mode", { security_settings: { ...STRONG, security_mode: "None" } }],
  ["security_settings.endpoint_security_policy", { security_settings: { ...STRONG, endpoint_security_policy: "Basic128Rsa15" } }],
  ["security_settings.token_security_policy", { security_settings: { ...STRONG, token_security_policy: "None" } }],
  ["security_settings", { security_settings: undefined }],
  ["type", { type: "s7plus" }],
];

test.each(MOVED)("a change of %s withholds a password of this machine, names both places and the command", (field, change) => {
  const judged = judgeSecrets([use({ ...OPCUA, ...change })], first);
  const [held] = judged.withheld.values();
  expect(held?.changed).toEqual([field]);
  expect(judged.places).toBe(first);
  const words = held && withheldWords(held);
  expect(words).toContain("sudo collector secret confirm press-1");
  expect(words).toContain("10.0.0.5:4840, called plc:4840, as reader");
  // Back where it was, it is given again; confirmed, it stays where it is now.
  expect(judgeSecrets([use(OPCUA)], judged.places).withheld.size).toBe(0);
  const confirmed = withPlace(judged.places, use({ ...OPCUA, ...change }));
  expect(judgeSecrets([use({ ...OPCUA, ...change })], confirmed).withheld.size).toBe(0);
  if (!field.startsWith("security")) expect(judgeSecrets([use(OPCUA)], confirmed).withheld.size).toBe(1);
});

test("what protects more is taken, and then nothing below it", () => {
  const weak = { ...OPCUA, security_settings: { ...STRONG, security_mode: "Sign" } };
  const bound = judgeSecrets([use(weak)], new Map()).places;
  const stronger = judgeSecrets([use(OPCUA)], bound);
  expect(stronger.withheld.size).toBe(0);
  expect(judgeSecrets([use(weak)], stronger.places).withheld.size).toBe(1);
});

test("a record that is deleted and created again, renamed or joined by another of the name gets it only where it was", () => {
  const again = (details: object) => judgeSecrets([use(details, { uuid: "u-2" })], first);
  expect(again(OPCUA).withheld.size).toBe(0);
  expect(again({ ...OPCUA, host: "10.0.0.66" }).withheld.size).toBe(1);
  const both = judgeSecrets([use(OPCUA), use({ ...OPCUA, host: "10.0.0.66" }, { uuid: "u-2" })], new Map());
  expect([...both.withheld.keys()]).toEqual(["u-2"]);
  // Set again, it is bound to where it is used from then on.
  const moved = use({ ...OPCUA, host: "10.0.0.66" });
  expect(judgeSecrets([moved], withoutSecret(first, moved.secret)).withheld.size).toBe(0);
});

test("networks of the settings open the host alone, and only by address", () => {
  const networks = ["10.0.0.0/24", "fd00::/8"];
  const judged = (change: object) => judgeSecrets([use({ ...OPCUA, ...change }, { networks })], first).withheld.size;
  expect(judged({ host: "10.0.0.66" })).toBe(0);
  expect(judged({ host: "fd00::5" })).toBe(0);
  expect(judged({ host: "10.0.0.66", endpoint_url: "opc.tcp://10.0.0.66:4840/ua" })).toBe(0);
  for (const change of [
    { host: "10.0.1.66" },
    { host: "plc.example" },
    { host: "10.0.0.66", port: 4841 },
    { host: "10.0.0.66", endpoint_url: "opc.tcp://10.0.1.66:4840/ua" },
    { host: "10.0.0.66", user_identity: { type: "UserNamePassword", username: "admin" } },
    { host: "10.0.0.66", security_settings: { ...STRONG, security_mode: "None" } },
  ])
    expect(judged(change), JSON.stringify(change)).toBe(1);
});

test("no place where no secret goes; a sink's own server has none", () => {
  for (const details of [
    null,
    "text",
    {},
    { type: "opcua", port: 4840, users: [{ username: "scada" }] },
    { type: "platform" },
    { ...OPCUA, user_identity: { type: "Anonymous" } },
    { ...OPCUA, user_identity: { type: "X509Certificate" } },
  ])
    expect(secretPlace(details)).toBeUndefined();
  expect(placeOf({ type: "mqtt", host: "broker", port: 1883, topic: "a", username: "press" })).toMatchObject({ user: "press", port: 1883 });
});

test("any changes of the configuration: the password is given only where a person has let it go, or better protected", () => {
  const steps = fc.record({
    change: fc.record(
      {
        host: fc.constantFrom("10.0.0.66", "plc"),
        port: fc.constantFrom(4841),
        user_identity: fc.constantFrom({ type: "UserNamePassword", username: "admin" }),
        security_settings: fc.record({
          security_mode: fc.constantFrom(...SECURITY_MODES),
          endpoint_security_policy: fc.constantFrom(...SECURITY_POLICIES),
          token_security_policy: fc.constantFrom(...SECURITY_POLICIES),
        }),
      },
      { requiredKeys: [] },
    ),
    uuid: fc.constantFrom("u-1", "u-2"),
    isConfirmed: fc.boolean(),
  });
  const outcomes = { given: 0, withheld: 0 };
  fc.assert(
    fc.property(fc.array(steps, { minLength: 3, maxLength: 6 }), (all) => {
      let bound = first;
      const approved = [placeOf(OPCUA)];
      for (const { change, uuid, isConfirmed } of all) {
        const one = use({ ...OPCUA, ...change }, { uuid });
        const judged = judgeSecrets([one], bound);
        const isGiven = judged.withheld.size === 0;
        outcomes[isGiven ? "given" : "withheld"]++;
        if (isGiven) expect(approved.some((before) => placeChanges(before, one.place).length === 0)).toBe(true);
        else if (isConfirmed) approved.push(one.place);
        bound = isConfirmed && !isGiven ? withPlace(judged.places, one) : judged.places;
        // What was given, or confirmed, is given as it is.
        if (isGiven || isConfirmed) expect(judgeSecrets([one], bound).withheld.size).toBe(0);
      }
    }),
    { numRuns: 300 },
  );
  for (const count of Object.values(outcomes)) expect(count).toBeGreaterThan(10);
});

test("the places are kept over restarts in a file of the owner's, which holds no secret; a damaged one is said and begun again", () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), "collector-places-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = path.join(folder, "secret-places.json");
  const kept = new SecretPlacesFile(file, silentLog);
  kept.use(first);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(judgeSecrets([use({ ...OPCUA, host: "10.0.0.66" })], new SecretPlacesFile(file, silentLog).places).withheld.size).toBe(1);
  expect(readSecretPlaces(file)).toEqual(first);
  for (const damage of [readFileSync(file, "utf8").slice(0, 40), '{"version":1,"places":{"a":{"b":{}}}}', '"text"']) {
    writeFileSync(file, damage);
    const log = recordingLog();
    expect(new SecretPlacesFile(file, log).places.size).toBe(0);
    expect(log.lines).toEqual([expect.stringMatching(/^error the file that binds secrets to addresses is unreadable: /)]);
    expect(() => readSecretPlaces(file)).toThrow(file);
  }
  const log = recordingLog();
  const unsaved = new SecretPlacesFile(path.join(folder, "none", "places.json"), log);
  unsaved.use(first);
  unsaved.use(withPlace(first, use(OPCUA, { uuid: "u-3" })));
  expect([unsaved.places.size, log.lines.length]).toEqual([1, 1]);
});

test("it grows to a bound", () => {
  let bound = first;
  for (let n = 0; n < 200; n++) bound = judgeSecrets([use(OPCUA, { uuid: `v-${n}` })], bound).places;
  expect(bound.get("secret: press-1")?.size).toBe(64);
});
