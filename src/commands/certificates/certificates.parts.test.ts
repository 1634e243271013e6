import { execFile } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { startOpcuaSimulator } from "../../../drivers/opcua/simulator.ts";
import { builtCollector } from "../../../test/support/built-collector.ts";
import { temporaryFolder } from "../../api/server/testing.ts";
import type { CommandIo } from "../io.ts";
import { certificatePlace } from "./certificates.ts";

const NOBODY = 65_534;
const isRoot = process.getuid?.() === 0;
const io = (env: Readonly<Record<string, string>>) => ({ env }) as unknown as CommandIo;

test("the service's folder where it can be written, else the person's own, made when it is asked for", async () => {
  const folder = temporaryFolder();
  const home = join(folder, "home");
  const service = await certificatePlace({ state_dir: folder }, io({ HOME: home }));
  expect(service).toMatchObject({ dir: join(folder, "pki"), stateDir: folder, isService: true });
  const [away, again] = [1, 2].map(() => certificatePlace({ state_dir: join(folder, "nowhere") }, io({ HOME: home })));
  expect(await away).toMatchObject({ dir: join(home, ".local", "state", "collector", "pki"), isService: false });
  expect((await again)?.installation).toBe((await away)?.installation);
  const named = { XDG_STATE_HOME: join(folder, "xdg") };
  expect((await certificatePlace({ state_dir: "/nowhere" }, io({ HOME: home, ...named }))).dir).toBe(
    join(folder, "xdg", "collector", "pki"),
  );
  // Relative ones are to be ignored (XDG Base Directory Specification).
  const relative = await certificatePlace({ state_dir: "/nowhere" }, io({ HOME: home, XDG_STATE_HOME: "here" }));
  expect(relative.dir).toBe((await away)?.dir);
  const uuid = "6f2a1d1e-4b0d-4a57-9d51-7f0c6d1f0a01";
  expect((await certificatePlace({ state_dir: folder, collector: uuid }, io({}))).installation).toBe(uuid);
});

test.runIf(isRoot)("what root writes with read belongs to the service", { timeout: 30_000 }, async () => {
  const simulator = await startOpcuaSimulator({ bulk: 1 });
  onTestFinished(() => simulator.close());
  const folder = temporaryFolder();
  chmodSync(folder, 0o755);
  const stateDir = join(folder, "state");
  mkdirSync(stateDir, { mode: 0o750 });
  chownSync(stateDir, NOBODY, NOBODY);
  const config = join(folder, "collector.yaml");
  writeFileSync(config, `state_dir: ${stateDir}\n`);
  const words = [
    `endpoint_url=${simulator.endpointUrl}`,
    "security_settings.security_mode=Sign",
    "security_settings.endpoint_security_policy=Basic256Sha256",
  ];
  const program = await builtCollector();
  const out = await new Promise<string>((done) =>
    execFile(program, ["read", "opcua", ...words, "i=2258", "--config", config], (_error, stdout) => done(stdout)),
  );
  expect(out).toContain(`sudo collector pki trust -c ${config} ${simulator.certificate.thumbprint}`);
  const written = readdirSync(stateDir, { recursive: true, encoding: "utf8" });
  expect(written).toContain(join("pki", "rejected", `${simulator.certificate.thumbprint}.der`));
  expect(written.filter((name) => statSync(join(stateDir, name)).uid !== NOBODY)).toEqual([]);
});
