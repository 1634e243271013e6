import { createPrivateKey, type KeyObject, randomBytes } from "node:crypto";
import { chmodSync } from "node:fs";
import { hostname, networkInterfaces } from "node:os";
import path from "node:path";
import { withLock } from "../../lib/file-lock.ts";
import { createFile, makePrivateFolder, move, namesIn, readIfThere, remove, stampOf, sweep } from "../../lib/files.ts";
import type { Log } from "../../model/context.ts";
import { messageOf } from "../../model/failure.ts";
import type { OwnCertificate } from "../../model/pki.ts";
import { type Certificate, dayOf, parseCertificateFile, toPem } from "./certificate.ts";
import { type CertificateSubject, DAY_MS, EARLIEST_MS, keyId, makeCertificate, makeKey } from "./make.ts";

/** So long before the end the next certificate is made and announced, for people to let servers and clients trust it in time. */
export const ANNOUNCE_DAYS = 90;
/** So long before the end it is used. */
export const USE_DAYS = 14;
const MAX_PEM_BYTES = 64 * 1024;
/** Former certificates that are kept. */
const MAX_OLD = 10;
const REMIND_MS = DAY_MS;

export interface OwnOptions {
  /** The folder `own` of the PKI. */
  readonly folder: string;
  readonly installation: string;
  readonly now: () => number;
  readonly log: Log;
}

/** The certificates of ours: the one in use, and the one that will follow it where the time has come. */
export interface OwnState {
  readonly current: Certificate;
  readonly next: Certificate | undefined;
  readonly certificateFile: string;
  readonly privateKeyFile: string;
}

/** Who the collector is. The file `certificate.pem` alone says which key is in use, so that both change in one step. */
export interface Own {
  /** Makes and renews. Throws Error for people where the folder cannot be written or what is there cannot be used. */
  get(): Promise<OwnCertificate>;
  /** Without making anything; undefined: there is no certificate yet. Throws as `get`. */
  look(): OwnState | undefined;
  /** Another certificate at once, with the same URI; with the same key unless `newKey`. Throws as `get`. */
  renew(newKey: boolean): Promise<OwnState>;
}

export function createOwn({ folder, installation, now, log }: OwnOptions): Own {
  const currentFile = path.join(folder, "certificate.pem");
  const nextFile = path.join(folder, "next.pem");
  const oldFolder = path.join(folder, "old");
  const keyFile = (id: string): string => path.join(folder, `key-${id}.pem`);
  const nowMs = (): number => Math.max(now(), EARLIEST_MS);
  let known: { readonly stamp: string; readonly state: OwnState } | undefined;
  let remindedMs = Number.NEGATIVE_INFINITY;

  const certificateIn = (file: string): Certificate | undefined => {
    const bytes = readIfThere(file, MAX_PEM_BYTES);
    if (bytes === undefined) return undefined;
    try {
      return parseCertificateFile(bytes)[0];
    } catch (error) {
      throw new Error(`${file} cannot be used: ${messageOf(error)}. Put the file back, or make a new identity: ${NEW_IDENTITY}`, {
        cause: error,
      });
    }
  };

  const keyOf = (certificate: Certificate): KeyObject => {
    const file = keyFile(keyId(certificate.x509.publicKey));
    const bytes = readIfThere(file, MAX_PEM_BYTES);
    if (!bytes) throw new Error(`the key of ${currentFile} is missing: ${file}. Put it back, or make a new identity: ${NEW_IDENTITY}`);
    const key = privateKey(bytes, file);
    if (!certificate.x509.checkPrivateKey(key)) throw new Error(`${file} is not the key of ${currentFile}`);
    return key;
  };

  const look = (): OwnState | undefined => {
    const stamp = `${stampOf(currentFile)} ${stampOf(nextFile)}`;
    if (known?.stamp === stamp && stampOf(known.state.privateKeyFile) !== undefined) return known.state;
    const current = certificateIn(currentFile);
    if (!current) return undefined;
    keyOf(current);
    let next: Certificate | undefined;
    try {
      next = certificateIn(nextFile);
    } catch (error) {
      log.warn({ err: error }, "the next certificate cannot be used; it is made again");
      remove(nextFile);
    }
    const state = { current, next, certificateFile: currentFile, privateKeyFile: keyFile(keyId(current.x509.publicKey)) };
    known = { stamp, state };
    return state;
  };

  const subject = (): CertificateSubject => ({
    applicationUri: `urn:collector:${installation}`,
    name: `collector ${installation.slice(0, 8)}`,
    ...namesOfMachine(),
  });

  const writeKey = async (): Promise<KeyObject> => {
    const key = await makeKey();
    createFile(keyFile(keyId(key)), key.export({ type: "pkcs8", format: "pem" }));
    return key;
  };

  const locked = async <T>(work: () => Promise<T>): Promise<T> => {
    writable(folder);
    return withLock(path.join(folder, ".lock"), work);
  };

  const create = async (): Promise<OwnState> => {
    const key = await writeKey();
    const der = await makeCertificate(key, subject(), nowMs());
    createFile(currentFile, toPem(der), { mode: 0o644 });
    const state = present(look(), currentFile);
    log.info(wordsOf(state.current), "the collector has a certificate of its own now: let OPC UA servers and clients trust it");
    return state;
  };

  /** The same identity: key and URI stay, and the name by which people know it. */
  const writeNext = async ({ current }: OwnState, key: KeyObject): Promise<void> => {
    const name = /CN=([^,]+)/.exec(current.subject)?.[1] ?? subject().name;
    const applicationUri = current.applicationUri ?? subject().applicationUri;
    const der = await makeCertificate(key, { ...subject(), name, applicationUri }, nowMs());
    createFile(nextFile, toPem(der), { mode: 0o644 });
  };

  const useNext = (state: OwnState): OwnState => {
    makePrivateFolder(oldFolder);
    const age = (name: string): number => Number(name.split("-")[0]);
    createFile(path.join(oldFolder, `${now()}-${state.current.thumbprint}.pem`), toPem(state.current.der), { mode: 0o644 });
    for (const name of namesIn(oldFolder)
      .sort((a, b) => age(a) - age(b))
      .slice(0, -MAX_OLD))
      remove(path.join(oldFolder, name));
    move(nextFile, currentFile);
    return present(look(), currentFile);
  };

  /** What is to be made or used now. Only under the lock: others may have done it since. */
  const bringUpToDate = async (): Promise<OwnState> => {
    let state = look() ?? (await create());
    for (let step = stepOf(state, nowMs()); step !== "keep"; ) {
      if (step === "drop") remove(nextFile);
      else if (step === "make") await writeNext(state, keyOf(state.current));
      else {
        state = useNext(state);
        log.warn(
          wordsOf(state.current),
          "the collector's certificate was about to expire and is renewed: where OPC UA servers refuse it, trust it there",
        );
      }
      state = present(look(), currentFile);
      const then = stepOf(state, nowMs());
      // Each step leads to the next one; where it did not, the clock is at work, and the next call goes on.
      if (then === step) break;
      step = then;
    }
    return state;
  };

  const get = async (): Promise<OwnCertificate> => {
    let state = look();
    if (!state || stepOf(state, nowMs()) !== "keep") {
      try {
        state = await locked(bringUpToDate);
      } catch (error) {
        // A full disk must not cost a connection for which there is still a certificate.
        if (!state || nowMs() >= state.current.notAfter) throw error;
        log.warn(
          { err: error, expires: dayOf(state.current.notAfter) },
          "the collector's certificate cannot be renewed; it is tried again",
        );
      }
    }
    const own = ownCertificate(state);
    if (state.next && own.notice !== undefined && now() - remindedMs >= REMIND_MS) {
      remindedMs = now();
      log.warn({ ...wordsOf(state.next) }, own.notice);
    }
    return own;
  };

  let turn: Promise<unknown> = Promise.resolve();
  /** One after the other here, and under the lock one after the other on this machine. */
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const next = turn.then(work);
    turn = next.catch(() => undefined);
    return next;
  };

  return {
    look,
    get: () => inTurn(get),
    renew: (newKey) =>
      inTurn(() =>
        locked(async () => {
          let before: OwnState | undefined;
          try {
            before = look();
          } catch (error) {
            // A new identity is the way out where the old one is damaged.
            if (!newKey) throw error;
            log.warn({ err: error }, "the former certificate cannot be used");
            moveAway(currentFile);
          }
          if (!before) return create();
          remove(nextFile);
          await writeNext(before, newKey ? await writeKey() : keyOf(before.current));
          return useNext(before);
        }),
      ),
  };
}

const NEW_IDENTITY = "sudo collector pki renew --new-key";

function moveAway(file: string): void {
  move(file, `${file}.${randomBytes(4).toString("hex")}.damaged`);
}

function present(state: OwnState | undefined, file: string): OwnState {
  if (!state) throw new Error(`${file} was removed while it was being made`);
  return state;
}

function writable(folder: string): void {
  try {
    makePrivateFolder(folder);
    chmodSync(folder, 0o700);
    sweep(folder);
  } catch (error) {
    throw new Error(`the collector's certificate cannot be made: ${folder}: ${messageOf(error)}`, { cause: error });
  }
}

const useFrom = ({ notAfter }: Validity): number => notAfter - USE_DAYS * DAY_MS;

/** What has to be done now. Pure. `make` the next certificate, `use` it, `drop` one that is of no use, or `keep` all as it is. */
export function stepOf(
  { current, next }: { readonly current: Validity; readonly next: Validity | undefined },
  nowMs: number,
): "keep" | "make" | "use" | "drop" {
  // One that is not valid yet was made while the clock was wrong, and is as useless as one that has expired.
  const isUnusable = nowMs < current.notBefore || nowMs >= useFrom(current);
  const isDue = isUnusable || nowMs >= current.notAfter - ANNOUNCE_DAYS * DAY_MS;
  if (!next) return isDue ? "make" : "keep";
  const isNextGood = next.notBefore <= nowMs && nowMs < next.notAfter - ANNOUNCE_DAYS * DAY_MS;
  if (!isDue || !isNextGood) return "drop";
  return isUnusable ? "use" : "keep";
}

type Validity = Pick<Certificate, "notBefore" | "notAfter">;

function ownCertificate({ current, next, certificateFile, privateKeyFile }: OwnState): OwnCertificate {
  const { applicationUri, der, thumbprint, notAfter } = current;
  if (applicationUri === undefined) throw new Error(`${certificateFile} holds no application URI; make a new identity: ${NEW_IDENTITY}`);
  const notice =
    next &&
    `the collector's certificate expires on ${dayOf(notAfter)}: let OPC UA servers and clients trust the next one (thumbprint ${next.thumbprint}), which is used from ${dayOf(useFrom(current))}; type: sudo collector pki export next.der --next`;
  return {
    applicationUri,
    certificateFile,
    privateKeyFile,
    certificate: der,
    thumbprint,
    notAfter,
    ...(notice !== undefined && { notice }),
  };
}

export function privateKey(pem: Uint8Array, file: string): KeyObject {
  try {
    return createPrivateKey({ key: Buffer.from(pem), format: "pem" });
  } catch (error) {
    const sealed = /ENCRYPTED/.test(Buffer.from(pem).toString("latin1"));
    // OpenSSL's words tell nothing of what the file holds.
    throw new Error(
      `${file}: ${sealed ? "the key has a passphrase; take it off (openssl pkey)" : `this is no private key (${messageOf(error)})`}`,
      {
        cause: error,
      },
    );
  }
}

const wordsOf = ({ subject, thumbprint, applicationUri, notAfter }: Certificate): object => ({
  subject,
  thumbprint,
  applicationUri,
  validTo: dayOf(notAfter),
});

/** Informative only: who connects by another name or address is served all the same. */
function namesOfMachine(): { readonly dns: readonly string[]; readonly ip: readonly string[] } {
  const name = hostname();
  const ip = Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter(({ internal, address }) => !internal && !/^(fe80:|169\.254\.)/i.test(address))
    .map(({ address }) => address.split("%")[0] ?? address);
  // What is no DNS name would make a certificate that others cannot read.
  return { dns: /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/i.test(name) ? [name] : [], ip: [...new Set(ip)].sort() };
}
