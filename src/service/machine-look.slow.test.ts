import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, expect, test } from "vitest";
import { silentLog } from "../model/context.ts";
import { createPki } from "../os/pki/pki.ts";
import { MachineLook } from "./machine-look.ts";

let made = "";
afterEach(() => rmSync(made, { recursive: true, force: true }));
const temporaryFolder = (): string => {
  made = mkdtempSync(path.join(os.tmpdir(), "collector-machine-"));
  return made;
};

const INSTALLATION = "6f2a1d1e-4b0d-4a57-9d51-7f0c6d1f0a01";

test("the ends of our own and of trusted certificates are found, and a damaged file among them hides none", async () => {
  const folder = temporaryFolder();
  const [place, other] = ["pki", "other"].map((name) => ({ dir: path.join(folder, name), installation: INSTALLATION }));
  if (!place || !other) throw new Error("no places");
  const [own, device] = await Promise.all([createPki(place).own(), createPki(other).own()]);
  const trusted = path.join(place.dir, "trusted");
  mkdirSync(trusted, { recursive: true });
  writeFileSync(path.join(trusted, "device.der"), device.certificate);
  writeFileSync(path.join(trusted, "damaged.der"), "none");
  const { certificates, freeBytes } = await new MachineLook(folder, place, silentLog).figures();
  expect(certificates.map(({ kind, thumbprint, notAfterMs }) => [kind, thumbprint, notAfterMs]).sort()).toEqual([
    ["own", own.thumbprint, own.notAfter],
    ["trusted", device.thumbprint, device.notAfter],
  ]);
  expect(freeBytes).toBeGreaterThan(0);
});

test("a certificate that is trusted later is found at the next look", async () => {
  const folder = temporaryFolder();
  const [place, other] = ["pki", "other"].map((name) => ({ dir: path.join(folder, name), installation: INSTALLATION }));
  if (!place || !other) throw new Error("no places");
  const device = await createPki(other).own();
  const trusted = path.join(place.dir, "trusted");
  mkdirSync(trusted, { recursive: true });
  const look = new MachineLook(folder, place, silentLog);
  expect(look.certificates()).toEqual([]);
  // Times of change are as coarse as the kernel's clock ticks.
  await new Promise((done) => setTimeout(done, 20));
  writeFileSync(path.join(trusted, "device.der"), device.certificate);
  await expect.poll(() => look.certificates().map(({ thumbprint }) => thumbprint)).toEqual([device.thumbprint]);
});

test("without a PKI folder and without a disk there is nothing to tell, and nothing is made", async () => {
  const folder = path.join(temporaryFolder(), "gone");
  const look = new MachineLook(folder, { dir: path.join(folder, "pki"), installation: INSTALLATION }, silentLog);
  expect(await look.figures()).toEqual({ freeBytes: undefined, certificates: [] });
});
