import path from "node:path";
import { type Log, silentLog } from "../../model/context.ts";
import { messageOf } from "../../model/failure.ts";
import type { Pki, UserCertificate } from "../../model/pki.ts";
import { type Certificate, parseCertificateFile } from "./certificate.ts";
import { readIfThere } from "./files.ts";
import { createOwn, type Own, privateKey } from "./own.ts";
import { createTrust, type Trust } from "./trust.ts";

export interface PkiOptions {
  /** `<state_dir>/pki`. Made when something is first written to it. */
  readonly dir: string;
  /** Uuid of this installation: of it the application URI is made, once. */
  readonly installation: string;
  /** Epoch ms; default: the system's clock. */
  readonly now?: () => number;
  readonly log?: Log;
}

/** As the contexts of drivers and sinks have it, and what `collector pki` works on. */
export interface OpenPki extends Pki {
  readonly identity: Own;
  readonly trust: Trust;
}

const MAX_FILE_BYTES = 64 * 1024;
const USER = /^\w[\w.-]{0,63}$/;

/**
 * The PKI of this machine. Several threads and processes may work on one folder at the same moment: each file appears in one step, of two that
 * make the same one wins, and what one changes the others see at the next call.
 *
 * `own/` certificate.pem, key-<id>.pem, next.pem, old/ · `trusted/` · `rejected/` · `issuers/` · `peers/` · `users/<name>.pem`, `<name>.key.pem`
 */
export function createPki({ dir, installation, now = Date.now, log = silentLog }: PkiOptions): OpenPki {
  const identity = createOwn({ folder: path.join(dir, "own"), installation, now, log });
  const trust = createTrust({ dir, now, log });
  return {
    identity,
    trust,
    own: () => identity.get(),
    judge: (chain, options) => trust.judge(chain, options),
    user: async (name) => userCertificate(path.join(dir, "users"), name),
  };
}

/** Where the two files of a user lie. Throws Error where the name cannot be one of a file. */
export function userFiles(folder: string, name: string): { readonly certificateFile: string; readonly privateKeyFile: string } {
  if (!USER.test(name)) throw new Error(`user_certificate ${JSON.stringify(name)}: expected letters, digits, _ . and -, at most 64`);
  return { certificateFile: path.join(folder, `${name}.pem`), privateKeyFile: path.join(folder, `${name}.key.pem`) };
}

function userCertificate(folder: string, name: string): UserCertificate {
  const files = userFiles(folder, name);
  const [certificate, key] = [files.certificateFile, files.privateKeyFile].map((file) => readIfThere(file, MAX_FILE_BYTES));
  const missing = [...(certificate ? [] : [files.certificateFile]), ...(key ? [] : [files.privateKeyFile])];
  if (!certificate || !key)
    throw new Error(
      `the user certificate ${name} is not complete, missing: ${missing.join(", ")}. Type: sudo collector pki user ${name} CERTIFICATE KEY`,
    );
  return { ...files, certificate: checkPair(certificate, files.certificateFile, key, files.privateKeyFile).der };
}

/** The certificate, which is this key's. Throws Error that names the file at fault. */
export function checkPair(certificate: Uint8Array, certificateFile: string, key: Uint8Array, keyFile: string): Certificate {
  let parsed: Certificate | undefined;
  try {
    [parsed] = parseCertificateFile(certificate);
  } catch (error) {
    throw new Error(`${certificateFile}: ${messageOf(error)}`, { cause: error });
  }
  if (!parsed?.x509.checkPrivateKey(privateKey(key, keyFile))) throw new Error(`${keyFile} is not the key of ${certificateFile}`);
  return parsed;
}
