import { closeSync, fstatSync, mkdtempSync, openSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { anyText } from "../../test/support/any-text.ts";
import { formatLogLine } from "../lib/log-text.ts";
import { isSecretName, toLoggable } from "../lib/loggable.ts";
import { createLogger, isJournal, type Logger, type LogOptions } from "./log.ts";

function logged(options: Partial<LogOptions> & { isTTY?: boolean }, use: (log: Logger) => void): string[] {
  const lines: string[] = [];
  const stream = { isTTY: options.isTTY ?? false, write: (line: string) => lines.push(line) };
  use(createLogger({ level: "info", format: "auto", journald: false, stream, ...options }));
  return lines;
}

const refused = {
  source: "press-1",
  type: "modbus_tcp",
  endpoint: "10.0.0.5:502",
  reason: { type: "CONNECTION_REFUSED" },
  since: "2026-11-19T09:00:00.000Z",
  nextRetryAt: "2026-11-20T09:00:05.000Z",
  nextStep: "Check that the device listens: nc -vz 10.0.0.5 502",
  err: Object.assign(new Error("connect ECONNREFUSED 10.0.0.5:502"), { code: "ECONNREFUSED" }),
};

test("commands in texts for people are completed, in words and in next steps", () => {
  const complete = (text: string) => text.replaceAll("collector probe", "collector probe -c a.yaml");
  const [line] = logged({ complete, format: "json" }, (log) =>
    log.warn({ nextStep: "`collector probe x`", detail: "see collector probe", source: "collector probe" }, "collector probe y"),
  );
  expect(JSON.parse(line ?? "")).toMatchObject({
    nextStep: "`collector probe -c a.yaml x`",
    detail: "see collector probe -c a.yaml",
    source: "collector probe",
    msg: "collector probe -c a.yaml y",
  });
});

describe("text", () => {
  test("lays out the fields of a state change", () => {
    const { err, ...fields } = refused;
    const line = formatLogLine(
      {
        level: "warn",
        time: "2026-11-20T09:00:00.123Z",
        msg: "The device refused the connection.",
        ...fields,
        err: { message: err.message },
      },
      { colour: false, journald: false },
    );
    expect(line).toBe(
      "2026-11-20T09:00:00.123Z WARN  press-1 (modbus_tcp 10.0.0.5:502): CONNECTION_REFUSED since 2026-11-19T09:00:00.000Z — " +
        "The device refused the connection: connect ECONNREFUSED 10.0.0.5:502. Next try 09:00:05. " +
        "Next step: Check that the device listens: nc -vz 10.0.0.5 502",
    );
  });

  test("says a condition and a detail, and the subject once", () => {
    const fields = { source: "press-1", reason: "UNKNOWN", condition: "all_variables_faulted", detail: "3 of 3 are faulted" };
    expect(logged({ journald: true }, (log) => log.warn(fields, "press-1: Nothing could be read."))).toEqual([
      "<4>press-1: UNKNOWN (all_variables_faulted) — Nothing could be read: 3 of 3 are faulted\n",
    ]);
  });

  test("a recovery does not read like a failure", () => {
    expect(
      logged({ journald: true }, (log) => log.info({ source: "press-1", reason: { type: "TIMEOUT" } }, "recovered after 5 s")),
    ).toEqual(["<6>press-1: recovered after 5 s reason=TIMEOUT\n"]);
  });

  test("shows a reason's payload, other fields as key=value, and causes", () => {
    const [line] = logged({}, (log) =>
      log.error(
        {
          sink: "broker",
          reason: { type: "S7PLUS_ERROR", category: "AUTHENTICATION" },
          values: 12,
          file: "/a b",
          err: new Error("outer", { cause: new Error("inner") }),
        },
        "failed",
      ),
    );
    expect(line).toMatch(
      /^\d{4}-\S+Z ERROR broker: S7PLUS_ERROR \(category AUTHENTICATION\) — failed: outer, caused by: inner values=12 file="\/a b"\n$/,
    );
  });

  test("has colours on a terminal only", () => {
    expect(logged({ isTTY: true }, (log) => log.info({}, "hello")).join()).toContain("\u001b[32mINFO");
    expect(logged({ isTTY: false }, (log) => log.info({}, "hello")).join()).not.toContain("\u001b");
    expect(logged({ isTTY: true, journald: true }, (log) => log.info({}, "hello"))).toEqual(["<6>hello\n"]);
  });

  test("under journald each level has its priority and no time stamp", () => {
    const lines = logged({ journald: true, level: "debug" }, (log) => {
      log.debug({}, "a");
      log.info({}, "b");
      log.warn({ source: "press-1" }, "c");
      log.error({}, "d");
    });
    expect(lines).toEqual(["<7>a\n", "<6>b\n", "<4>press-1: c\n", "<3>d\n"]);
  });

  test("no text forges a line or reaches the terminal as a control", () => {
    const text = anyText({ maxLength: 60 });
    fc.assert(
      fc.property(text, text, text, (source, detail, message) => {
        const [line = "", ...more] = logged({}, (log) => log.warn({ source, detail, err: new Error(detail) }, message));
        expect(more).toEqual([]);
        expect(line.endsWith("\n")).toBe(true);
        expect(line.slice(0, -1)).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u);
      }),
    );
  });
});

describe("json", () => {
  test("is one object a line with level, ISO time, fields and message", () => {
    const [line = ""] = logged({ format: "json", isTTY: true }, (log) => log.warn(refused, "refused\nforged"));
    expect(line.match(/\n/g)).toHaveLength(1);
    const record = JSON.parse(line);
    expect(record).toMatchObject({
      level: "warn",
      source: "press-1",
      reason: { type: "CONNECTION_REFUSED" },
      err: { name: "Error", message: "connect ECONNREFUSED 10.0.0.5:502", code: "ECONNREFUSED" },
      msg: "refused\nforged",
    });
    expect(new Date(record.time).toISOString()).toBe(record.time);
    expect(record.err.stack).toBeUndefined();
  });

  test("keeps a field that has a name of the record's own", () => {
    const [line = ""] = logged({ format: "json" }, (log) => log.info({ level: 3, time: "noon", msg: "x" }, "said"));
    expect(JSON.parse(line)).toMatchObject({ level: "info", msg: "said", level_: 3, time_: "noon", msg_: "x" });
  });

  test("a field without a value of its kind is written all the same", () => {
    const circle: Record<string, unknown> = { big: 2n ** 63n, nan: Number.NaN, bytes: new Uint8Array(3) };
    circle["self"] = circle;
    Object.defineProperty(circle, "trap", {
      enumerable: true,
      get: () => {
        throw new Error("no");
      },
    });
    const [line = ""] = logged({ format: "json" }, (log) => log.info({ circle }, "odd"));
    expect(JSON.parse(line).circle).toEqual({
      big: "9223372036854775808",
      nan: "NaN",
      bytes: "[3 bytes]",
      self: "[circular]",
      trap: "[unreadable]",
    });
  });
});

test("the level can be changed while running, for children too; debug shows stacks", () => {
  const lines: string[] = [];
  const log = createLogger({ level: "warn", format: "json", journald: false, stream: { write: (line) => lines.push(line) } });
  const child = log.child({ source: "press-1" });
  child.info({}, "not written");
  log.level = "debug";
  child.debug({ err: new Error("why") }, "written");
  expect(lines).toHaveLength(1);
  expect(JSON.parse(lines[0] ?? "")).toMatchObject({
    source: "press-1",
    msg: "written",
    err: { stack: expect.stringContaining("log.test") },
  });
});

test("the format can be changed while running, for children too", () => {
  const lines: string[] = [];
  const log = createLogger({ level: "info", format: "text", journald: false, stream: { write: (line) => lines.push(line) } });
  const child = log.child({ source: "press-1" });
  child.info({}, "for people");
  log.format = "json";
  child.info({}, "for programs");
  expect(lines[0]).toMatch(/INFO .*press-1.*for people/);
  expect(JSON.parse(lines[1] ?? "")).toMatchObject({ source: "press-1", msg: "for programs" });
});

describe("secrets", () => {
  const CANARY = "canary-7f3a";

  test("never reach the log by the name of their field, at any depth, in children, in URLs", () => {
    for (const format of ["json", "text"] as const) {
      const lines = logged({ format, level: "debug" }, (log) => {
        const child = log.child({ password: CANARY, broker: `mqtts://me:${CANARY}@broker:8883/x` });
        child.debug({ details: { user_identity: { password: CANARY }, list: [{ api_key: CANARY }] } }, "a");
        child.warn({ headers: { Authorization: `Bearer ${CANARY}` }, secrets: { anything: CANARY, deep: { of: CANARY } } }, "b");
        child.error({ key: CANARY, privateKey: CANARY, token: CANARY, err: new Error(`GET http://a:${CANARY}@host/ failed`) }, "c");
      });
      expect(lines).toHaveLength(3);
      expect(lines.join("")).not.toContain(CANARY);
      expect(lines.join("")).toContain("[redacted]");
      expect(lines.join("")).toContain("@broker:8883/x");
    }
  });

  test("names that only sound like one are kept", () => {
    for (const name of ["key_file", "password_file", "layoutKey", "secret_missing", "monkey"]) expect(isSecretName(name)).toBe(false);
    for (const name of ["password", "userPassword", "API-Key", "client_secret", "access_token"]) expect(isSecretName(name)).toBe(true);
  });
});

test("toLoggable never throws and gives what JSON can write", () => {
  fc.assert(
    fc.property(
      fc.dictionary(fc.string(), fc.anything({ withBigInt: true, withDate: true, withMap: true, withNullPrototype: true })),
      (fields) => {
        expect(() => JSON.stringify(toLoggable(fields, true))).not.toThrow();
      },
    ),
  );
});

test("a stream that nobody drains costs lines, counted, and not memory", () => {
  const lines: string[] = [];
  const stream = { writableLength: 0, write: (line: string) => lines.push(line) };
  const log = createLogger({ level: "info", format: "text", journald: true, stream });
  stream.writableLength = 2 * 1024 * 1024;
  log.info({}, "one");
  log.info({}, "two");
  stream.writableLength = 0;
  log.info({}, "three");
  expect(lines).toEqual(["<4>log lines were dropped: the output was too slow lines=2\n", "<6>three\n"]);
});

test("the journal is known by device and inode", () => {
  const folder = mkdtempSync(join(tmpdir(), "collector-log-"));
  const handle = openSync(join(folder, "out"), "w");
  try {
    const { dev, ino } = fstatSync(handle);
    expect(isJournal(`${dev}:${ino}`, handle)).toBe(true);
    expect(isJournal(`${dev}:${ino + 1}`, handle)).toBe(false);
    expect(isJournal(undefined, handle)).toBe(false);
    expect(isJournal("garbage", handle)).toBe(false);
  } finally {
    closeSync(handle);
    rmSync(folder, { recursive: true });
  }
});
