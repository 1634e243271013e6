import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

export interface CertificateFiles {
  readonly cert: string;
  readonly key: string;
}

/** An authority of its own in a temporary folder, through openssl. */
export interface TestAuthority {
  readonly ca: string;
  /** `names` as subjectAltName has them: `DNS:broker.test`, `IP:127.0.0.1`. */
  issue(name: string, names: string, validity?: "now" | "expired"): Promise<CertificateFiles>;
  remove(): Promise<void>;
}

const EC_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc"];

export async function createAuthority(): Promise<TestAuthority> {
  const folder = await mkdtemp(path.join(tmpdir(), "authority-"));
  let serial = 1;
  const at = (name: string) => path.join(folder, name);
  const request = (name: string, more: readonly string[]) =>
    run("openssl", ["req", ...EC_KEY, "-keyout", at(`${name}.key`), "-subj", `/CN=${name}`, ...more]);
  await request("ca", ["-x509", "-days", "90", "-out", at("ca.pem")]);
  return {
    ca: at("ca.pem"),
    async issue(name, names, validity = "now") {
      await request(name, ["-new", "-out", at(`${name}.csr`), "-addext", `subjectAltName=${names}`]);
      const signed = ["-CA", at("ca.pem"), "-CAkey", at("ca.key"), "-set_serial", `${++serial}`, "-copy_extensions", "copy"];
      const days = validity === "now" ? "90" : "-1";
      await run("openssl", ["x509", "-req", "-in", at(`${name}.csr`), ...signed, "-days", days, "-out", at(`${name}.pem`)]);
      return { cert: at(`${name}.pem`), key: at(`${name}.key`) };
    },
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}
