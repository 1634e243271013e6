import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { lastGoodFile } from "../../api/embedded.ts";
import { temporaryFolder } from "../../api/server/testing.ts";
import { silentLog } from "../../model/context.ts";
import { reported, textsOf } from "../../model/testing/warnings.ts";
import { localSocketPath, startLocalSocket } from "../../service/local-socket.ts";
import { RecentLog } from "../../service/recent-log.ts";
import { EXIT } from "../io.ts";
import { runCommand, runCommandWith, settingsFile } from "../testing.ts";

/** The place where secrets are, and what must not be in the bundle. */
const CANARIES = {
  credential: "canary-credential-1",
  passwordFile: "canary-of-file/2 ä",
  adminKey: "canary-admin-key-3",
  inSettings: "canary-in-settings-4",
  inUrl: "canary-in-url-5",
  inLog: "canary-in-log-6",
  inHost: "canary-in-host-7",
} as const;

function unpacked(file: string): ReadonlyMap<string, string> {
  const folder = temporaryFolder();
  execFileSync("tar", ["-xzf", file, "-C", folder]);
  return new Map(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), "utf8")]));
}

async function here() {
  const folder = temporaryFolder();
  const config = settingsFile(folder, {});
  for (const name of ["credentials", "keys"]) mkdirSync(join(folder, name));
  writeFileSync(join(folder, "credentials", "press-1"), `${CANARIES.credential}\n`);
  writeFileSync(join(folder, "keys", "admin.key"), `${CANARIES.adminKey}\n`);
  writeFileSync(join(folder, "pw"), `${CANARIES.passwordFile}\n`);
  writeFileSync(join(folder, "policy.yaml"), "sources: {networks: [127.0.0.0/8]}\n");
  return { folder, config };
}

test("holds what a question needs, and no secret in any form, wherever it was", async () => {
  const { folder, config } = await here();
  writeFileSync(
    config,
    `state_dir: ${folder}\nsources:\n  press-1:\n    password_file: pw\n    password: ${CANARIES.inSettings}\n    host: u:${CANARIES.inHost}@10.0.0.5\n`,
  );
  writeFileSync(lastGoodFile(folder), `{"details":{"host":"reader:${CANARIES.inHost}@10.0.0.5","token":"x${CANARIES.inSettings}"}}`);
  const log = new RecentLog();
  log.take(JSON.stringify({ level: "info", msg: `asked http://u:${CANARIES.inUrl}@broker`, password: CANARIES.inLog }));
  log.take(JSON.stringify({ level: "warn", msg: encodeURIComponent(CANARIES.passwordFile) }));
  const status = {
    version: "0",
    started_at: "2026-11-20T07:00:00.000Z",
    config: { ok: true },
    sources: [],
    sinks: [],
    alarms: [reported(`it says ${CANARIES.credential}`), reported(CANARIES.adminKey)],
    buffer: { bytes: 0, max_bytes: 1 },
  };
  const handlers = { "/status": () => status };
  const socket = await startLocalSocket(
    { path: localSocketPath(folder), handlers, actions: { "/log": (body) => log.answer(body) } },
    { signal: new AbortController().signal, log: silentLog },
  );
  onTestFinished(() => socket.close());
  const file = join(folder, "question.tar.gz");
  const { code, out, err } = await runCommand("support-bundle", file, "--config", config, "--json");
  expect([code, err]).toEqual([EXIT.good, ""]);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const files = unpacked(file);
  const names = ["README.txt", "check.json", "collector.yaml", "configuration.txt", "doctor.json", "log.txt", "policy.yaml", "status.json"];
  expect([...files.keys()].sort()).toEqual([...names, "plans.json"].sort());
  const all = [...files.values(), out].join("\n");
  for (const canary of Object.values(CANARIES))
    for (const form of [canary, encodeURIComponent(canary), Buffer.from(canary).toString("base64")]) expect(all).not.toContain(form);
  expect(files.get("configuration.txt")).toContain("10.0.0.5");
  expect(textsOf(JSON.parse(files.get("status.json") ?? "").alarms)).toEqual(["it says [redacted]", "[redacted]"]);
  expect(files.get("log.txt")?.trimEnd().split("\n")).toHaveLength(2);

  const again = await runCommand("support-bundle", file, "--config", config);
  expect(again).toMatchObject({ code: EXIT.usage, err: expect.stringContaining("is there already") });
});

test("is made without a service too, and says what is missing", async () => {
  const { folder, config } = await here();
  const file = join(folder, "question.tar.gz");
  const { code, out, err } = await runCommand("support-bundle", file, "--config", config);
  expect([code, out]).toEqual([EXIT.good, expect.stringContaining("Look it over")]);
  expect(err).toMatch(/status\.json: the service does not run here.*\n.*configuration\.txt: /s);
  expect([...unpacked(file).keys()]).toContain("doctor.json");
  const nowhere = await runCommand("support-bundle", join(folder, "no", "where.tar.gz"), "--config", config);
  expect(nowhere).toMatchObject({ code: EXIT.usage, err: expect.stringContaining("cannot be written") });
});

test("tail shows the last lines, and goes on with those that come", async () => {
  const { folder, config } = await here();
  const log = new RecentLog();
  for (let n = 1; n <= 3; n++)
    log.take(
      JSON.stringify({ level: "info", time: "2026-11-20T07:00:00.000Z", source: n === 2 ? "oven" : "press-1", msg: `line ${n} \u202e` }),
    );
  const socket = await startLocalSocket(
    { path: localSocketPath(folder), handlers: {}, actions: { "/log": (body) => log.answer(body) } },
    { signal: new AbortController().signal, log: silentLog },
  );
  onTestFinished(() => socket.close());
  const { code, out } = await runCommand("tail", "press-1", "--config", config);
  expect([code, out]).toEqual([
    EXIT.good,
    expect.stringMatching(/^2026-11-20T07:00:00\.000Z INFO {2}press-1: line 1 \\u202e\n.*line 3 \\u202e\n$/),
  ]);
  const json = await runCommand("tail", "--lines", "1", "--json", "--config", config);
  expect(JSON.parse(json.out)).toMatchObject({ msg: "line 3 \u202e" });
  expect(await runCommand("tail", "--lines", "x", "--config", config)).toMatchObject({ code: EXIT.usage });

  const stop = new AbortController();
  let seen = "";

  const following = runCommandWith(
    {
      signal: stop.signal,
      onOut(text) {
        seen += text;
        if (seen.includes("line 9")) stop.abort();
      },
    },
    ...["tail", "--lines", "0", "--follow", "--config", config],
  );
  setTimeout(() => log.take(JSON.stringify({ level: "info", time: "2026-11-20T07:00:01.000Z", msg: "line 9" })), 100);
  expect(await following).toMatchObject({ code: EXIT.good, out: expect.stringMatching(/^\S+ INFO {2}line 9\n$/) });
});

test("takes captures along where it is asked to, and none that holds a secret of this machine", async () => {
  const { folder, config } = await here();
  const captures = join(folder, "captures");
  mkdirSync(captures);
  const frames = Buffer.of(0x0a, 0x0d, 0x0d, 0x0a, 0xff, 0xfe, 0x00);
  writeFileSync(join(captures, "press-1-20260102T030405Z.pcapng"), frames);
  writeFileSync(join(captures, "press-2-20260102T030405Z.pcapng"), Buffer.concat([frames, Buffer.from(CANARIES.passwordFile), frames]));
  writeFileSync(config, `state_dir: ${folder}\nsources:\n  press-2:\n    password_file: pw\n`);
  const bundle = join(folder, "bundle.tar.gz");
  const plain = await runCommand("support-bundle", join(folder, "plain.tar.gz"), "--json", "--config", config);
  expect((JSON.parse(plain.out) as { files: string[] }).files.join(" ")).not.toContain("captures/");
  const { code, out, err } = await runCommand("support-bundle", bundle, "--captures", "--json", "--config", config);
  expect(code).toBe(EXIT.good);
  const { files } = JSON.parse(out) as { files: string[] };
  expect(files.filter((name) => name.startsWith("captures/"))).toEqual(["captures/press-1-20260102T030405Z.pcapng"]);
  expect(err).toContain("captures/press-2-20260102T030405Z.pcapng: left out, because it holds a secret of this machine");
  const unpackedTo = temporaryFolder();
  execFileSync("tar", ["-xzf", bundle, "-C", unpackedTo]);
  expect(readFileSync(join(unpackedTo, "captures", "press-1-20260102T030405Z.pcapng"))).toEqual(frames);
  expect(readFileSync(join(unpackedTo, "README.txt"), "utf8")).toContain("captures/           what failed data sources exchanged");
});
