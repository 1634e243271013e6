import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { nearest } from "../base/nearest.ts";
import { loadSettings, parseSettings, stateDirIn, variablesDir } from "./settings-file.ts";
import { SettingsError } from "./strict-yaml.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "collector-settings-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

const problems = (yaml: string | Uint8Array) => {
  const result = parseSettings(typeof yaml === "string" ? Buffer.from(yaml) : yaml);
  return "problems" in result ? result.problems : [];
};
const UUID = "0b5c1f9e-6a52-4f7e-9a43-1f0c2f1d4a11";

describe("the state folder of settings that cannot be used", () => {
  test.each([
    ["bufer: 1\nstate_dir: state\n", "state"],
    ["state_dir: 'st ate' # here\nbufer: 1\n", "st ate"],
    ['state_dir: "/var/x"\n  log: [\n', "/var/x"],
    ["state_dir: st ate # here\n- x\n", "st ate"],
    ["bufer: 1\n", "/var/lib/collector"],
    ["# state_dir: a\nbufer: 1\n", "/var/lib/collector"],
  ])("%j is %s", (yaml, expected) => {
    const file = join(folder, "bad.yaml");
    writeFileSync(file, yaml);
    expect(stateDirIn(file)).toBe(resolve(folder, expected));
  });

  test("where there is no file is the usual one", () => {
    expect(stateDirIn(join(folder, "none.yaml"))).toBe("/var/lib/collector");
  });
});

describe("bad settings name line, key and what would be right", () => {
  const cases: readonly [name: string, yaml: string, line: number | undefined, path: string, message: RegExp][] = [
    ["a mistyped key", "state_dir: /x\nbufer:\n  max_age: 1d\n", 2, "bufer", /not known; did you mean buffer\?/],
    ["a mistyped inner key", "buffer:\n  maxbytes: 1GiB\n", 2, "buffer.maxbytes", /did you mean max_bytes\?/],
    ["a key that is like none", "xyzzy: 1\n", 1, "xyzzy", /known here: collector, state_dir, api/],
    ["a bad duration", "buffer:\n  max_age: 3 weeks\n", 2, "buffer.max_age", /expected a duration such as 250ms/],
    [
      "a bare number for a duration",
      "embedded_api:\n\n  poll_interval: 5\n",
      3,
      "embedded_api.poll_interval",
      /expected a text, not a number/,
    ],
    ["a bad size", "buffer: { max_bytes: 1 GB }\n", 1, "buffer.max_bytes", /512MiB/],
    ["an unknown choice", "log:\n  level: loud\n", 2, "log.level", /expected debug, info, warn or error/],
    ["a port out of range", "embedded_api:\n  listen: 127.0.0.1:70000\n", 2, "embedded_api.listen", /within 1 and 65535/],
    ["no port", "embedded_api:\n  listen: 127.0.0.1\n", 2, "embedded_api.listen", /expected address:port/],
    ["a foreign protocol", `collector: ${UUID}\napi:\n  url: ftp://x\n  key_file: k\n`, 3, "api.url", /Invalid URL/],
    ["a missing key", `collector: ${UUID}\napi:\n  url: https://x\n`, 2, "api.key_file", /is required \(File that holds the API key/],
    ["a key over plain http", `collector: ${UUID}\napi:\n  url: http://x\n  key_file: k\n`, 3, "api.url", /insecure: true/],
    ["an API without the collector", "api:\n  url: https://x\n  key_file: k\n", undefined, "collector", /required with api\.url/],
    ["no uuid", "collector: press\n", 1, "collector", /UUID/],
    ["a source that is no mapping", "sources:\n  press-1: 3\n", 2, "sources.press-1", /expected an object, not a number/],
    ["a tab", "buffer:\n\tmax_age: 1d\n", 2, "", /tab.*spaces only/],
    ["a key twice", "state_dir: a\nstate_dir: b\n", 2, "", /occurs twice/],
    ["a list", "- a\n- b\n", 1, "", /expected an object, not a list/],
    ["a bare word", "hello\n", 1, "", /expected an object, not a text/],
    ["broken YAML", 'state_dir: "abc\n', 2, "", /not valid YAML: Missing closing "quote/],
    ["a second document", "state_dir: a\n---\nstate_dir: b\n", 2, "", /not valid YAML: Source contains multiple documents/],
    ["an unknown tag", "state_dir: !include x\n", 1, "", /not valid YAML: Unresolved tag/],
    ["a name of the language's own", "__proto__: { a: 1 }\n", 1, "__proto__", /not known/],
    ["null", "buffer: ~\n", 1, "buffer", /expected an object, not nothing \(null\)/],
  ];
  test.each(cases)("%s", (_, yaml, line, path, message) => {
    const found = problems(yaml);
    expect(found.map((p) => p.path)).toContain(path);
    const problem = found.find((p) => p.path === path);
    expect(problem?.message).toMatch(message);
    if (line !== undefined) expect(problem?.line).toBe(line);
  });

  test("several at once, each named", () => {
    expect(problems("bufer: 1\nlog: { level: x }\n").map((p) => p.path)).toEqual(expect.arrayContaining(["bufer", "log.level"]));
  });

  test("a file that is not UTF-8, with its line", () => {
    expect(problems(Buffer.concat([Buffer.from("state_dir: a\n# "), Buffer.from([0xe4, 0x0a])]))).toEqual([
      { line: 2, path: "", message: "is not UTF-8; save the file as UTF-8" },
    ]);
  });

  test("an alias bomb ends in a sentence", () => {
    const bomb = [
      "a0: &a0 [x]",
      ...Array.from({ length: 9 }, (_, i) => `a${i + 1}: &a${i + 1} [${Array(9).fill(`*a${i}`).join(",")}]`),
    ].join("\n");
    expect(problems(bomb)[0]?.message).toMatch(/alias/);
  });

  test("any bytes give settings or problems, never an exception", () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => void parseSettings(bytes)));
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom("a", ":", " ", "\n", "-", "\t", "[", "{", "&", "*", "!", '"', "|", "?", "%"), maxLength: 60 }),
        (text) => void parseSettings(Buffer.from(text)),
      ),
    );
  });
});

describe("the file", () => {
  const write = (name: string, content: string | Uint8Array) => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };
  const messageFor = (path: string) => {
    try {
      loadSettings(path);
    } catch (error) {
      expect(error).toBeInstanceOf(SettingsError);
      return (error as SettingsError).message;
    }
    throw new Error("no SettingsError");
  };

  test("is read, with paths counted from its folder", () => {
    const file = write(
      "good.yaml",
      `\ufeffcollector: ${UUID}\nstate_dir: state\napi: { url: "https://plant.example/api", key_file: key }\n`,
    );
    const { settings, file: used } = loadSettings(file);
    expect(used).toBe(file);
    expect(settings).toMatchObject({ state_dir: join(folder, "state"), api: { key_file: join(folder, "key"), poll_interval: 10_000 } });
    expect(variablesDir({ settings, file })).toBe(join(folder, "variables"));
  });

  test("may be empty or comments only", () => {
    expect(loadSettings(write("empty.yaml", "")).settings.log.level).toBe("info");
    expect(loadSettings(write("comments.yaml", "# nothing\n")).settings.log.level).toBe("info");
  });

  test("may be absent at its usual place, and not where --config names it", () => {
    const absent = join(folder, "absent.yaml");
    expect(loadSettings(undefined, absent)).toMatchObject({ file: undefined, settings: { state_dir: "/var/lib/collector" } });
    expect(messageFor(absent)).toBe(`${absent}: the settings file does not exist`);
  });

  test("problems carry file and line", () => {
    const file = write("bad.yaml", "\nbufer: 1\n");
    expect(messageFor(file)).toBe(`${file}:2: bufer: this key is not known; did you mean buffer?`);
  });

  test("a folder, a device and a file beyond 1 MiB are refused in words", () => {
    mkdirSync(join(folder, "folder.yaml"));
    expect(messageFor(join(folder, "folder.yaml"))).toMatch(/is a folder; a file is needed/);
    expect(messageFor("/dev/zero")).toMatch(/no plain file/);
    expect(messageFor(write("huge.yaml", `# ${"x".repeat(1024 * 1024)}`))).toMatch(/longer than 1048576 bytes/);
  });
});

test("api.ca of earlier versions is api.tls.ca_file; both of them are a question, and no password of a proxy is shown", () => {
  const settings = (rest: string) =>
    parseSettings(Buffer.from(`collector: 0d4ae1f6-6c4a-4f0e-9b66-0c3c6ad1f0a1\napi:\n  url: https://api.example\n  key_file: k\n${rest}`));
  expect(settings("  ca: /etc/ca.pem\n")).toMatchObject({ settings: { api: { tls: { ca_file: "/etc/ca.pem" } } } });
  expect(settings("  ca: /etc/ca.pem\n  tls: { ca_file: /etc/other.pem }\n")).toMatchObject({ problems: [{ line: 5, path: "api.ca" }] });
  const refused = settings("  proxy: http://user:canary@proxy:3128\n");
  expect(refused).toMatchObject({ problems: [{ line: 5, path: "api.proxy", message: expect.stringContaining("proxy_password_file") }] });
  expect(JSON.stringify(refused)).not.toContain("canary");
});

test("the nearest known word, or none", () => {
  expect(nearest("hots", ["host", "port"])).toBe("host");
  expect(nearest("Max-Bytes", ["max_bytes", "max_age"])).toBe("max_bytes");
  expect(nearest("modbus", ["s7", "modbus_tcp"])).toBe("modbus_tcp");
  expect(nearest("temperature", ["host", "port"])).toBeUndefined();
});
