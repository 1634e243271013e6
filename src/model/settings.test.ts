import { describe, expect, test } from "vitest";
import { settingsSchema, sourceSettingsSchema } from "./settings.ts";

const pathsOf = (input: unknown) => settingsSchema.safeParse(input).error?.issues.map((issue) => issue.path.join("."));

const api = (more: object) => ({
  collector: "0d4ae1f6-6c4a-4f0e-9b66-0c3c6ad1f0a1",
  api: { url: "https://api.example", key_file: "k", ...more },
});

test("an empty file is the embedded API on loopback with every default", () => {
  expect(settingsSchema.parse({})).toMatchObject({
    state_dir: "/var/lib/collector",
    embedded_api: { listen: "127.0.0.1:8420", poll_interval: 500 },
    readout_interval_unit: "seconds",
    publish_interval_unit: "seconds",
    buffer: { max_age: 30 * 86_400_000, keep_removed: 86_400_000 },
    log: { level: "info", format: "auto" },
    sources: {},
    sinks: {},
  });
  expect(sourceSettingsSchema.parse({})).toEqual({
    forget_habits_after: 2_592_000_000,
    name_timeout: 5000,
    connect_timeout: 5000,
    answer_timeout: 3000,
    prepare_timeout: 60_000,
    report: "all",
    deadband: 0,
    deadband_percent: 0,
    heartbeat: 600_000,
    key_readouts: 3_600_000,
  });
});

test("what somebody removes at the embedded API is seen within a second: the wait for the next question is shorter, with its jitter", () => {
  expect(settingsSchema.parse({}).embedded_api.poll_interval * 1.1).toBeLessThan(1000);
});

test("the API's key needs a collector, and a network that does not show it", () => {
  const api = { url: "https://api.example", key_file: "/etc/collector/key" };
  const collector = "0D4AE1F6-6C4A-4F0E-9B66-0C3C6AD1F0A1";
  expect(settingsSchema.parse({ collector, api }).collector).toBe(collector.toLowerCase());
  expect(pathsOf({ api })).toEqual(["collector"]);
  expect(pathsOf({ collector, api: { ...api, url: "http://api.example" } })).toEqual(["api.url"]);
  expect(pathsOf({ collector, api: { ...api, url: "http://api.example", insecure: true } })).toBeUndefined();
  for (const host of ["127.0.0.1:8420", "localhost:8420", "[::1]:8420"])
    expect(pathsOf({ collector, api: { ...api, url: `http://${host}` } }), host).toBeUndefined();
  expect(pathsOf({ collector, api: { ...api, url: "http://127.0.0.1.example" } })).toEqual(["api.url"]);
});

describe("refused, at its key", () => {
  test.each<[string, object, string]>([
    ["a uuid that is none", { collector: "press-1" }, "collector"],
    ["a URL that is none", { collector: "0d4ae1f6-6c4a-4f0e-9b66-0c3c6ad1f0a1", api: { url: "not a url", key_file: "k" } }, "api.url"],
    ["a URL of another kind", { collector: "0d4ae1f6-6c4a-4f0e-9b66-0c3c6ad1f0a1", api: { url: "ftp://x", key_file: "k" } }, "api.url"],
    ["a proxy that is no address", api({ proxy: "proxy:3128" }), "api.proxy"],
    ["a proxy of another kind", api({ proxy: "socks5://proxy:1080" }), "api.proxy"],
    ["a proxy with a path", api({ proxy: "http://proxy:3128/pac" }), "api.proxy"],
    ["a proxy's password in the settings", api({ proxy: "http://user:canary@proxy:3128" }), "api.proxy"],
    ["a proxy's password without its user", api({ proxy: "http://proxy:3128", proxy_password_file: "p" }), "api.proxy_password_file"],
    ["a certificate without its key", api({ tls: { cert_file: "c" } }), "api.tls"],
    ["a port that is none", { embedded_api: { listen: "127.0.0.1:65536" } }, "embedded_api.listen"],
    ["an address without a port", { embedded_api: { listen: "127.0.0.1" } }, "embedded_api.listen"],
    ["an IPv6 address without brackets", { embedded_api: { listen: "::1:8420" } }, "embedded_api.listen"],
    ["a duration of zero", { embedded_api: { poll_interval: "0s" } }, "embedded_api.poll_interval"],
    ["a duration that no timer can wait", { embedded_api: { poll_interval: "25d" } }, "embedded_api.poll_interval"],
    ["a duration without a unit", { buffer: { max_age: "30" } }, "buffer.max_age"],
    ["a size in another unit", { buffer: { max_bytes: "1GB" } }, "buffer.max_bytes"],
    ["a size as a number", { buffer: { max_bytes: 1_000_000 } }, "buffer.max_bytes"],
    ["an unknown unit", { readout_interval_unit: "minutes" }, "readout_interval_unit"],
    ["an unknown level", { log: { level: "trace" } }, "log.level"],
    ["a source that is no map", { sources: { "press-1": 5 } }, "sources.press-1"],
  ])("%s", (_name, input, path) => {
    expect(pathsOf(input)).toEqual([path]);
  });

  test("an unknown key, by its name", () => {
    expect(settingsSchema.safeParse({ buffer: { max_byte: "1GiB" } }).error?.issues).toMatchObject([
      { code: "unrecognized_keys", keys: ["max_byte"], path: ["buffer"] },
    ]);
  });

  test.each<[string, object]>([
    ["an interval of zero", { interval: "0ms" }],
    ["no connection at all", { max_connections: 0 }],
    ["a deadline of zero", { connect_timeout: "0s" }],
    ["a deadline that is a number", { answer_timeout: 3000 }],
    ["an unknown key", { timeout: "3s" }],
  ])("%s of a source", (_name, input) => {
    expect(sourceSettingsSchema.safeParse(input).error?.issues).toHaveLength(1);
  });
});

test.each([
  ["1048576B", 2 ** 20],
  ["2048KiB", 2 ** 21],
  ["512MiB", 512 * 2 ** 20],
  ["2 GiB", 2 ** 31],
])("the size %s is %i bytes", (max_bytes, bytes) => {
  expect(settingsSchema.parse({ buffer: { max_bytes } }).buffer.max_bytes).toBe(bytes);
});

test("a buffer of less than it can work with is refused, and told what would do", () => {
  const { error } = settingsSchema.safeParse({ buffer: { max_bytes: "512KiB" } });
  expect(error?.issues).toMatchObject([{ path: ["buffer", "max_bytes"], message: expect.stringContaining("at least 1MiB") }]);
});
