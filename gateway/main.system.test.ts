import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, expect, it } from "vitest";
import { connectGateway, readGateway } from "../test/support/gateway.ts";

const PROGRAM = path.join(import.meta.dirname, "main.ts");
const KEY = "00112233445566778899aabbccddeeff";
const folder = mkdtempSync(path.join(os.tmpdir(), "gateway-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const keyFile = path.join(folder, "gateway.key");
writeFileSync(keyFile, `${KEY}\n`);

const start = (...args: readonly string[]): ChildProcess =>
  spawn(process.execPath, [PROGRAM, ...args], { stdio: ["ignore", "pipe", "pipe"] });

async function outcome(...args: readonly string[]): Promise<{ readonly code: number | null; readonly out: string }> {
  const child = start(...args);
  let out = "";
  for (const stream of [child.stdout, child.stderr]) stream?.setEncoding("utf8").on("data", (text: string) => (out += text));
  const code = await new Promise<number | null>((done) => child.once("close", done));
  return { code, out };
}

it("is read with the key of its file, writes no key, and ends when it is told to", async () => {
  const child = start("--listen", "127.0.0.1:0", "--psk-file", keyFile);
  let log = "";
  const port = await new Promise<number>((found) =>
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      log += text;
      const listening = /listening on 127\.0\.0\.1:(\d+), TLS by psk/.exec(log);
      if (listening) found(Number(listening[1]));
    }),
  );
  const session = await connectGateway(port, { local: { security: "psk" }, secret: KEY });
  expect(await readGateway(session, ["Press.Running", "Press.Profile"])).toMatchObject([{ value: true }, { value: [0, 12.5, 80, 12.5] }]);
  await expect(connectGateway(port, { local: { security: "psk" }, secret: KEY.replaceAll("0", "1") })).rejects.toThrow(/decrypt error/);
  await session.close();
  const ended = new Promise<unknown>((done) => child.once("close", done));
  child.kill("SIGTERM");
  expect(await ended).toBe(0);
  expect(log).not.toContain(KEY);
});

it("says what of its options is wrong, and ends with 2", async () => {
  const wrong = path.join(folder, "wrong.key");
  writeFileSync(wrong, "hunter2\n");
  const outcomes = await Promise.all([
    outcome("--listen", "0.0.0.0:0"),
    outcome("--listen", "nowhere"),
    outcome("--psk-file", wrong),
    outcome("--certificate", keyFile),
    outcome("--surprise"),
  ]);
  expect(outcomes.map(({ code }) => code)).toEqual([2, 2, 2, 2, 2]);
  const said = [
    /--psk-file or --certificate, or --insecure/,
    /expected an address and a port/,
    /holds no key: 32 to 128/,
    /go together/,
    /--surprise/,
  ];
  for (const [i, words] of said.entries()) expect(outcomes[i]?.out).toMatch(words);
  for (const { out } of outcomes) expect(out).not.toMatch(/hunter2|\n\s+at /);
});
