import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  createCredentials,
  credentialFileName,
  credentialKey,
  credentialsFolder,
  loadCredentials,
  missingPassword,
  overrideNote,
  secretCommand,
  withLocalSecrets,
} from "./credentials.ts";

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(path.join(os.tmpdir(), "collector-credentials-"));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const UUID = "0ebb773e-4e24-4aa6-ab3c-b17e68a3d9dc";
const press = { uuid: UUID, name: "press-1" };

describe("the name of a secret's file", () => {
  it("gives its key back and never leaves its folder", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", minLength: 1, maxLength: 20 }), (key) => {
        // A grapheme may be many code points of twelve characters each: longer names are refused, as the next test says.
        fc.pre(encodeURIComponent(key).length <= 200);
        const name = credentialFileName(key);
        expect(credentialKey(name)).toBe(key);
        expect(name).toMatch(/^[\w%!~*'()-][\w%.!~*'()-]*$/);
      }),
    );
  });

  it.each(["", "x".repeat(300)])("refuses %j and says what to use", (key) => expect(() => credentialFileName(key)).toThrow(/use the uuid/));
});

describe("loadCredentials", () => {
  it("takes what the service manager handed over, first lines alone", () => {
    for (const [file, text] of [
      ["secret_press-1", "plain\nmore\n"],
      [`sealed_${UUID}`, "decrypted"],
      ["secret_press%202", "with a space in its name\r\n"],
      ["secret", "none"],
      ["sealed", "none"],
      ["other", "not ours"],
    ])
      writeFileSync(path.join(dir, file ?? ""), text ?? "");
    const { secrets, problems } = loadCredentials(dir, path.join(dir, "nowhere"));
    expect(Object.fromEntries(secrets)).toEqual({ "press-1": "plain", [UUID]: "decrypted", "press 2": "with a space in its name" });
    expect(problems).toEqual([]);
  });

  it("takes those beside the settings file where no service manager is", () => {
    const settings = path.join(dir, "collector.yaml");
    mkdirSync(credentialsFolder(settings));
    writeFileSync(path.join(credentialsFolder(settings), "press-1"), "secret\n");
    writeFileSync(path.join(credentialsFolder(settings), ".press-2.new"), "half");
    expect([...loadCredentials(undefined, credentialsFolder(settings)).secrets]).toEqual([["press-1", "secret"]]);
  });

  it("starts without the folder, and names what cannot be read without its content", () => {
    expect(loadCredentials(undefined, path.join(dir, "nowhere"))).toEqual({ secrets: new Map(), problems: [] });
    mkdirSync(path.join(dir, "press-1"));
    writeFileSync(path.join(dir, "press-2"), Buffer.alloc(65 * 1024, "s"));
    writeFileSync(path.join(dir, "press-3"), "good");
    chmodSync(path.join(dir, "press-3"), 0o600);
    const { secrets, problems } = loadCredentials(undefined, dir);
    expect([...secrets.keys()]).toEqual(["press-3"]);
    expect(problems).toHaveLength(2);
    expect(problems.join()).not.toContain("sss");
  });
});

describe("createCredentials", () => {
  it("finds by uuid in either case before the name, and forgets", () => {
    const credentials = createCredentials(new Map([["press-1", "by name"]]));
    expect(credentials.secretOf(press, [press])).toBe("by name");
    credentials.set(UUID.toUpperCase(), "by uuid");
    expect(credentials.secretOf(press, [press])).toBe("by uuid");
    credentials.remove(UUID);
    credentials.remove("press-1");
    expect(credentials.secretOf(press, [press])).toBeUndefined();
  });

  it("gives a name's secret to nobody where two bear it", () => {
    const sink = { uuid: "7a0e4a52-2f0b-4c59-9c7e-3a1f5b7c9d10", name: "press-1" };
    const credentials = createCredentials(new Map([["press-1", "whose?"]]));
    expect(credentials.secretOf(press, [press, sink])).toBeUndefined();
    credentials.set(sink.uuid, "the sink's");
    expect(credentials.secretOf(sink, [press, sink])).toBe("the sink's");
  });
});

it.each([
  ["press-1", "sudo collector secret set press-1"],
  ["press 1; reboot", `sudo collector secret set ${UUID}`],
  ["--help", `sudo collector secret set ${UUID}`],
  [null, `sudo collector secret set ${UUID}`],
])("names the command for %j", (name, command) => expect(secretCommand({ uuid: UUID, name })).toBe(command));

describe("the secrets of the configuration", () => {
  const broker = { uuid: "7a0e4a52-2f0b-4c59-9c7e-3a1f5b7c9d10", name: "broker" };

  it("are those of the API, and those of this machine where there are such", () => {
    const remote = { [UUID]: { password: "api", key: "k" }, [broker.uuid]: { password: "api" } };
    const merged = withLocalSecrets(remote, [press, broker], createCredentials(new Map([["press-1", "here"]])));
    expect(merged).toEqual({ [UUID]: { password: "here", key: "k" }, [broker.uuid]: { password: "api" } });
  });

  it("have a password for each user of a server of ours, of the entry that is meant alone", () => {
    const local = createCredentials(
      new Map([
        ["broker/users/anna", "by name"],
        ["broker/users/ben/users/x", "odd"],
        ["press-1/users/anna", "another's"],
      ]),
    );
    local.set(`${broker.uuid.toUpperCase()}/users/anna`, "by uuid");
    const merged = withLocalSecrets(
      { [broker.uuid]: { "users.anna.password": "api", "users.cleo.password": "api" } },
      [press, broker],
      local,
    );
    expect(merged).toEqual({
      [broker.uuid]: { "users.anna.password": "by uuid", "users.ben/users/x.password": "odd", "users.cleo.password": "api" },
      [UUID]: { "users.anna.password": "another's" },
    });
    local.remove(`${broker.uuid}/users/anna`);
    expect(local.userSecretsOf(broker, [broker]).get("anna")).toBe("by name");
    expect(local.userSecretsOf(broker, [broker, { ...press, name: "broker" }]).size).toBe(0);
    expect(local.secretOf(broker, [broker])).toBeUndefined();
  });

  it.each([
    [{}, {}, {}, undefined],
    [{ username: "u" }, {}, {}, 'the password of user "u" is not on this machine; type `sudo collector secret set broker`'],
    [{}, { username: "u" }, {}, 'the password of user "u" is not on this machine; type `sudo collector secret set broker`'],
    [{ username: "u" }, {}, { password: "p" }, undefined],
    [
      {},
      { user_identity: { type: "UserNamePassword", username: "u" } },
      {},
      'the password of user "u" is not on this machine; type `sudo collector secret set broker`',
    ],
    [{}, { user_identity: { type: "UserNamePassword", username: "u" } }, { password: "p" }, undefined],
    [{}, { user_identity: { type: "X509Certificate" } }, {}, undefined],
    [{}, { user_identity: { type: "Anonymous" } }, {}, undefined],
    [{}, { user_identity: null }, {}, undefined],
    [{}, { user_identity: "username" }, {}, undefined],
    [{ username: "u" }, null, { password: "" }, undefined],
    [{ user: "" }, { password: { type: "none" } }, {}, undefined],
    [{}, { password: { type: "configured" } }, { password: "p" }, undefined],
    [
      {},
      { password: { type: "configured" } },
      {},
      "the password that is configured is not on this machine; type `sudo collector secret set broker`",
    ],
    [
      { user: "u" },
      { password: { type: "none" } },
      {},
      'the password of user "u" is not on this machine; type `sudo collector secret set broker`',
    ],
    [{ security: "psk" }, {}, {}, "the key of the gateway is not on this machine; type `sudo collector secret set broker`"],
    [{ security: "psk" }, {}, { password: "p" }, undefined],
    [{ security: "certificate" }, {}, {}, undefined],
    [
      { proxy: "http://hall%203@proxy.example:3128" },
      {},
      {},
      "the password of user \"hall 3\" is not on this machine; type `sudo collector secret set 'broker/users/hall 3'`",
    ],
    [{ proxy: "http://hall%203@proxy.example:3128" }, {}, { "users.hall 3.password": "p" }, undefined],
    [{ proxy: "http://proxy.example:3128" }, {}, {}, undefined],
    [{}, { users: [] }, {}, undefined],
    [
      {},
      { users: [{ username: "a" }, { username: "b" }] },
      { "users.a.password": "p" },
      'the password of user "b" is not on this machine; type `sudo collector secret set broker/users/b`',
    ],
    [
      {},
      { users: [{ username: "a b" }, { username: "c" }] },
      {},
      'the passwords of users "a b", "c" are not on this machine; type `sudo collector secret set \'broker/users/a b\'`',
    ],
  ])("%o, %o and %o miss: %s", (settings, details, secrets, expected) =>
    expect(missingPassword(broker, { settings, details, secrets })?.missingSecret).toBe(expected),
  );

  it("a password that may still come from the API is awaited, and nobody is asked to set one here", () => {
    const needed = { settings: {}, details: { username: "u" }, secrets: {} };
    const awaited = missingPassword(broker, needed, true);
    expect(awaited).toEqual({ awaitedSecret: expect.stringContaining('the password of user "u" is asked for at the configuration API') });
    expect(JSON.stringify(awaited)).not.toContain("secret set");
    const server = { settings: {}, details: { users: [{ username: "a" }, { username: "b" }] }, secrets: { "users.a.password": "p" } };
    expect(missingPassword(broker, server, true)).toEqual({ awaitedSecret: expect.stringContaining('user "b" is asked for') });
    expect(missingPassword(broker, { ...needed, secrets: { password: "p" } }, true)).toBeUndefined();
  });

  it("a secret of this machine that differs from the API's is noted, without either", () => {
    const note = overrideNote(broker, { password: "canary-api" }, { password: "canary-local" }, false);
    expect(note).toContain("sudo collector secret rm broker");
    expect(note).not.toContain("canary");
    expect(overrideNote(broker, { password: "p" }, { password: "q" }, true)).toContain("password_file");
    expect(overrideNote(broker, { password: "p" }, { password: "p" }, false)).toBeUndefined();
    expect(overrideNote(broker, undefined, { password: "p" }, false)).toBeUndefined();
  });
});
