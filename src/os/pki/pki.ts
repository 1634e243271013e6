import path from "node:path";
import { createFile, makePrivateFolder, readIfThere, replaceFile } from "../../lib/files.ts";
import { type Log, silentLog } from "../../model/context.ts";
import { messageOf } from "../../model/failure.ts";
import type { Pki, PkiPlace } from "../../model/pki.ts";
import { type Certificate, parseCertificateFile, toPem } from "./certificate.ts";
import { Own, privateKey } from "./own.ts";
import { Trust } from "./trust.ts";

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
  /** See `user`. */
  userCertificate(name: string): Certificate;
  /** Keeps a user's certificate (PEM or DER) and key (PEM). Throws Error where they do not fit or cannot be written. */
  addUser(name: string, certificate: GivenFile, key: GivenFile): Certificate;
  /** Keeps an authority that is not trusted itself and leads up to one that is; false: it is there. Throws the file system's error. */
  addIssuer(certificate: Certificate): boolean;
}

export interface GivenFile {
  /** For messages about it. */
  readonly file: string;
  readonly bytes: Uint8Array;
}

const MAX_FILE_BYTES = 64 * 1024;
const USER = /^\w[\w.-]{0,63}$/;

/**
 * The PKI of this machine. Several threads and processes may work on one folder at the same moment: each file appears in one step, a
 * certificate of ours is made under a lock, and what one changes the others see at the next call.
 *
 * `own/` certificate.pem, key-<id>.pem, next.pem, old/ · `trusted/` · `rejected/` · `issuers/` · `peers/` · `users/<name>.pem`, `<name>.key.pem`
 */
export function createPki({ dir, installation, now = Date.now, log = silentLog }: PkiOptions): OpenPki {
  const identity = new Own({ folder: path.join(dir, "own"), installation, now, log });
  const trust = new Trust({ dir, now, log });
  const users = path.join(dir, "users");
  return {
    identity,
    trust,
    own: () => identity.get(),
    judge: (chain, options) => trust.judge(chain, options),
    trustedFor: async (server) => trust.candidates(server).map(({ der }) => der),
    async user(name) {
      const { certificateFile, privateKeyFile, certificate } = userCertificate(users, name);
      return { certificateFile, privateKeyFile, certificate: certificate.der };
    },
    userCertificate: (name) => userCertificate(users, name).certificate,
    addUser(name, certificate, key) {
      const { certificateFile, privateKeyFile } = userFiles(users, name);
      const parsed = checkPair(certificate, key);
      makePrivateFolder(users);
      replaceFile(privateKeyFile, key.bytes);
      replaceFile(certificateFile, toPem(parsed.der));
      return parsed;
    },
    addIssuer(certificate) {
      const folder = path.join(dir, "issuers");
      makePrivateFolder(folder);
      return createFile(path.join(folder, `${certificate.thumbprint}.der`), certificate.der);
    },
  };
}

/** The two files of a user. Throws Error where the name cannot be one of a file. */
function userFiles(folder: string, name: string): { readonly certificateFile: string; readonly privateKeyFile: string } {
  if (!USER.test(name)) throw new Error(`user_certificate ${JSON.stringify(name)}: expected letters, digits, _ . and -, at most 64`);
  return { certificateFile: path.join(folder, `${name}.pem`), privateKeyFile: path.join(folder, `${name}.key.pem`) };
}

function userCertificate(
  folder: string,
  name: string,
): { readonly certificateFile: string; readonly privateKeyFile: string; readonly certificate: Certificate } {
  const files = userFiles(folder, name);
  const [certificate, key] = [files.certificateFile, files.privateKeyFile].map((file) => readIfThere(file, MAX_FILE_BYTES));
  const missing = [...(certificate ? [] : [files.certificateFile]), ...(key ? [] : [files.privateKeyFile])];
  if (!certificate || !key)
    throw new Error(
      `the user certificate ${name} is not complete, missing: ${missing.join(", ")}. Type \`sudo collector pki user ${name} CERTIFICATE KEY\``,
    );
  return {
    ...files,
    certificate: checkPair({ file: files.certificateFile, bytes: certificate }, { file: files.privateKeyFile, bytes: key }),
  };
}

/** The certificate, which is this key's. Throws Error that names the file at fault. */
function checkPair(certificate: GivenFile, key: GivenFile): Certificate {
  let parsed: Certificate | undefined;
  try {
    [parsed] = parseCertificateFile(certificate.bytes);
  } catch (error) {
    throw new Error(`${certificate.file}: ${messageOf(error)}`, { cause: error });
  }
  if (!parsed?.x509.checkPrivateKey(privateKey(key.bytes, key.file))) throw new Error(`${key.file} is not the key of ${certificate.file}`);
  return parsed;
}

/** The PKI of a thread, whose certificate is renewed for as long as the thread lives. */
export function openRenewedPki(place: PkiPlace, log: Log): OpenPki {
  const pki = createPki({ ...place, log });
  keepRenewed(pki, log);
  return pki;
}

/** How often a certificate's time is looked at while nobody connects. */
const CHECK_MS = 12 * 3_600_000;

/**
 * Announces and renews the collector's certificate in time also where a connection stays open for years and nothing asks for it. Makes none
 * where there is none. Lives as long as the thread and keeps nothing from ending.
 */
export function keepRenewed({ identity }: Pick<OpenPki, "identity">, log: Log, everyMs = CHECK_MS): void {
  setInterval(() => {
    Promise.resolve()
      .then(() => (identity.look() ? identity.get() : undefined))
      .catch((error: unknown) => log.warn({}, `cannot use the collector's certificate: ${messageOf(error)}`));
  }, everyMs).unref();
}
