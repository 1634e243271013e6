import { createPrivateKey, type KeyObject, randomBytes } from "node:crypto";
import { chmodSync } from "node:fs";
import path from "node:path";
import { withLock } from "../../lib/file-lock.ts";
import { createFile, makePrivateFolder, move, namesIn, readIfThere, remove, stampOf, sweep } from "../../lib/files.ts";
import type { Log } from "../../model/context.ts";
import { messageOf } from "../../model/failure.ts";
import type { OwnCertificate } from "../../model/pki.ts";
import { type Certificate, dayOf, parseCertificateFile, toPem } from "./certificate.ts";
import { type CertificateSubject, DAY_MS, EARLIEST_MS, keyId, makeCertificate, makeKey, makeSigningRequest } from "./make.ts";
import { namesOfMachine } from "./names-of-machine.ts";

/** The next certificate is made and announced so long before the end, for people to trust it at servers and clients in time. */
export const ANNOUNCE_DAYS = 90;
/** It replaces the current one so long before the end. */
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

/**
 * Who the collector is. The file `certificate.pem` alone says which key is in use, so that both change in one step. Changes are made one
 * after the other in this object, and under a lock one after the other on this machine.
 */
export class Own {
  readonly #folder: string;
  readonly #currentFile: string;
  readonly #nextFile: string;
  readonly #oldFolder: string;
  readonly #installation: string;
  readonly #now: () => number;
  readonly #log: Log;
  #known: { readonly stamp: string; readonly state: OwnState } | undefined;
  #remindedMs = Number.NEGATIVE_INFINITY;
  #lastTurn: Promise<unknown> = Promise.resolve();

  constructor({ folder, installation, now, log }: OwnOptions) {
    this.#folder = folder;
    this.#currentFile = path.join(folder, "certificate.pem");
    this.#nextFile = path.join(folder, "next.pem");
    this.#oldFolder = path.join(folder, "old");
    this.#installation = installation;
    this.#now = now;
    this.#log = log;
  }

  /** Makes and renews. Rejects with Error for people where the folder cannot be written or its content cannot be used. */
  get(): Promise<OwnCertificate> {
    return this.#inTurn(() => this.#get());
  }

  /** Without making anything; undefined: there is no certificate yet. Throws as `get`. */
  look(): OwnState | undefined {
    const stamp = `${stampOf(this.#currentFile)} ${stampOf(this.#nextFile)}`;
    if (this.#known?.stamp === stamp && stampOf(this.#known.state.privateKeyFile) !== undefined) return this.#known.state;
    const current = certificateIn(this.#currentFile);
    if (!current) return undefined;
    this.#keyOf(current);
    const next = this.#lookNext();
    const privateKeyFile = this.#keyFile(keyId(current.x509.publicKey));
    const state = { current, next, certificateFile: this.#currentFile, privateKeyFile };
    this.#known = { stamp, state };
    return state;
  }

  /** Another certificate at once, with the same URI; with the same key unless `newKey`. Rejects as `get`. */
  renew(newKey: boolean): Promise<OwnState> {
    return this.#inTurn(() => this.#locked(() => this.#renew(newKey)));
  }

  /** A request (PKCS #10, DER) for the plant's authority; for the key in use, or for a new one that waits for its certificate. Rejects as `get`. */
  request(newKey: boolean): Promise<Uint8Array> {
    return this.#inTurn(() =>
      this.#locked(async () => {
        const { current } = this.look() ?? (await this.#create());
        const key = newKey ? await this.#writeKey() : this.#keyOf(current);
        return makeSigningRequest(key, this.#subjectOf(current));
      }),
    );
  }

  /** The keys that are here, as `keyId` names them. */
  keys(): readonly string[] {
    return namesIn(this.#folder).flatMap((name) => /^key-([0-9a-f]{16})\.pem$/.exec(name)?.[1] ?? []);
  }

  /** Uses a certificate that an authority has signed for a key of ours. Rejects with Error for people where it cannot be ours. */
  import(certificate: Certificate): Promise<OwnState> {
    return this.#inTurn(() =>
      this.#locked(async () => {
        const state = this.look() ?? (await this.#create());
        if (state.current.thumbprint === certificate.thumbprint) return state;
        this.#checkImport(certificate, state);
        remove(this.#nextFile);
        createFile(this.#nextFile, toPem(certificate.der), { mode: 0o644 });
        return this.#useNext(state);
      }),
    );
  }

  #checkImport(certificate: Certificate, { current }: OwnState): void {
    const { subject, applicationUri, isAuthority, notBefore, notAfter, weaknesses } = certificate;
    const key = readIfThere(this.#keyFile(keyId(certificate.x509.publicKey)), MAX_PEM_BYTES);
    const nowMs = this.#now();
    const ours = this.#subjectOf(current).applicationUri;
    const wrong = !key
      ? "it is for a key that this collector does not have: `sudo collector pki request FILE` makes a request for the right one"
      : isAuthority
        ? "it is the certificate of an authority"
        : applicationUri !== ours
          ? `it names ${applicationUri ?? "no application URI"}, and this collector is ${ours}: the authority has to keep the alternative names of the request`
          : nowMs < notBefore || nowMs > notAfter
            ? `it is valid from ${dayOf(notBefore)} to ${dayOf(notAfter)}`
            : weaknesses.length > 0
              ? `it has ${weaknesses.join(" and ")}`
              : undefined;
    if (wrong !== undefined) throw new Error(`the certificate ${subject} cannot be used as the collector's own: ${wrong}`);
    this.#keyOf(certificate);
  }

  async #get(): Promise<OwnCertificate> {
    let state = this.look();
    if (!state || stepOf(state, this.#nowMs()) !== "keep") {
      try {
        state = await this.#locked(() => this.#bringUpToDate());
      } catch (error) {
        // A full disk must not cost a connection for which there is still a certificate.
        if (!state || this.#nowMs() >= state.current.notAfter) throw error;
        this.#log.warn(
          { err: error, expires: dayOf(state.current.notAfter) },
          "cannot renew the collector's certificate; the collector tries again",
        );
      }
    }
    const own = ownCertificate(state, this.#nowMs());
    if (own.notice !== undefined && this.#now() - this.#remindedMs >= REMIND_MS) {
      this.#remindedMs = this.#now();
      this.#log.warn({ ...wordsOf(state.next ?? state.current) }, own.notice);
    }
    return own;
  }

  async #renew(newKey: boolean): Promise<OwnState> {
    let before: OwnState | undefined;
    try {
      before = this.look();
    } catch (error) {
      // A new identity replaces a damaged one.
      if (!newKey) throw error;
      this.#log.warn({ err: error }, "cannot use the former certificate");
      moveAway(this.#currentFile);
    }
    if (!before) return this.#create();
    remove(this.#nextFile);
    await this.#writeNext(before, newKey ? await this.#writeKey() : this.#keyOf(before.current));
    return this.#useNext(before);
  }

  /** Does what is due now. Only under the lock: others may have done it since. */
  async #bringUpToDate(): Promise<OwnState> {
    let state = this.look() ?? (await this.#create());
    for (let step = stepOf(state, this.#nowMs()); step !== "keep"; ) {
      if (step === "drop") remove(this.#nextFile);
      else if (step === "make") await this.#writeNext(state, this.#keyOf(state.current));
      else {
        state = this.#useNext(state);
        this.#log.warn(
          wordsOf(state.current),
          "renewed the collector's certificate, which was about to expire; trust it at the OPC UA servers that refuse it",
        );
      }
      state = present(this.look(), this.#currentFile);
      const then = stepOf(state, this.#nowMs());
      // Each step leads to another one, unless the clock changed meanwhile; then the next call goes on.
      if (then === step) break;
      step = then;
    }
    return state;
  }

  async #create(): Promise<OwnState> {
    const key = await this.#writeKey();
    const der = await makeCertificate(key, this.#subject(), this.#nowMs());
    createFile(this.#currentFile, toPem(der), { mode: 0o644 });
    const state = present(this.look(), this.#currentFile);
    this.#log.info(wordsOf(state.current), "created the collector's certificate; trust it at the OPC UA servers and clients");
    return state;
  }

  /** The same identity: key and URI stay, and the name by which people know it. */
  async #writeNext({ current }: OwnState, key: KeyObject): Promise<void> {
    const der = await makeCertificate(key, this.#subjectOf(current), this.#nowMs());
    createFile(this.#nextFile, toPem(der), { mode: 0o644 });
  }

  #useNext(state: OwnState): OwnState {
    makePrivateFolder(this.#oldFolder);
    const age = (name: string): number => Number(name.split("-")[0]);
    const oldFile = path.join(this.#oldFolder, `${this.#now()}-${state.current.thumbprint}.pem`);
    createFile(oldFile, toPem(state.current.der), { mode: 0o644 });
    const old = namesIn(this.#oldFolder).sort((a, b) => age(a) - age(b));
    for (const name of old.slice(0, -MAX_OLD)) remove(path.join(this.#oldFolder, name));
    move(this.#nextFile, this.#currentFile);
    return present(this.look(), this.#currentFile);
  }

  async #writeKey(): Promise<KeyObject> {
    const key = await makeKey();
    createFile(this.#keyFile(keyId(key)), key.export({ type: "pkcs8", format: "pem" }));
    return key;
  }

  #lookNext(): Certificate | undefined {
    try {
      return certificateIn(this.#nextFile);
    } catch (error) {
      this.#log.warn({ err: error }, "cannot use the next certificate; the collector makes another");
      remove(this.#nextFile);
      return undefined;
    }
  }

  #keyOf(certificate: Certificate): KeyObject {
    const file = this.#keyFile(keyId(certificate.x509.publicKey));
    const bytes = readIfThere(file, MAX_PEM_BYTES);
    if (!bytes)
      throw new Error(`the key of ${this.#currentFile} is missing: ${file}. Put it back, or make a new identity: ${NEW_IDENTITY}`);
    const key = privateKey(bytes, file);
    if (!certificate.x509.checkPrivateKey(key)) throw new Error(`${file} is not the key of ${this.#currentFile}`);
    return key;
  }

  #keyFile(id: string): string {
    return path.join(this.#folder, `key-${id}.pem`);
  }

  #subject(): CertificateSubject {
    return {
      applicationUri: `urn:collector:${this.#installation}`,
      name: `collector ${this.#installation.slice(0, 8)}`,
      ...namesOfMachine(),
    };
  }

  #subjectOf(current: Certificate): CertificateSubject {
    const subject = this.#subject();
    const name = /CN=([^,]+)/.exec(current.subject)?.[1] ?? subject.name;
    return { ...subject, name, applicationUri: current.applicationUri ?? subject.applicationUri };
  }

  #nowMs(): number {
    return Math.max(this.#now(), EARLIEST_MS);
  }

  #locked<T>(work: () => Promise<T>): Promise<T> {
    makeWritable(this.#folder);
    return withLock(path.join(this.#folder, ".lock"), work);
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#lastTurn.then(work);
    this.#lastTurn = turn.catch(() => undefined);
    return turn;
  }
}

/** The first certificate of the file; undefined: there is no file. Throws Error for people. */
function certificateIn(file: string): Certificate | undefined {
  const bytes = readIfThere(file, MAX_PEM_BYTES);
  if (bytes === undefined) return undefined;
  try {
    return parseCertificateFile(bytes)[0];
  } catch (error) {
    throw new Error(`${file} cannot be used: ${messageOf(error)}. Put the file back, or make a new identity: ${NEW_IDENTITY}`, {
      cause: error,
    });
  }
}

const NEW_IDENTITY = "sudo collector pki renew --new-key";

function moveAway(file: string): void {
  move(file, `${file}.${randomBytes(4).toString("hex")}.damaged`);
}

function present(state: OwnState | undefined, file: string): OwnState {
  if (!state) throw new Error(`${file} was removed while it was being made`);
  return state;
}

function makeWritable(folder: string): void {
  try {
    makePrivateFolder(folder);
    chmodSync(folder, 0o700);
    sweep(folder);
  } catch (error) {
    throw new Error(`cannot make the collector's certificate: ${folder}: ${messageOf(error)}`, { cause: error });
  }
}

const useFrom = ({ notAfter }: Validity): number => notAfter - USE_DAYS * DAY_MS;

/** The step that is due now. Pure. `make` the next certificate, `use` it, `drop` one that is of no use, or `keep` all as it is. */
export function stepOf(
  { current, next }: { readonly current: Validity; readonly next: Validity | undefined },
  nowMs: number,
): "keep" | "make" | "use" | "drop" {
  // One that the plant's authority signed is renewed by it: servers that trust the authority would refuse one of our own making.
  if (current.isSelfSigned === false) return next ? "drop" : "keep";
  // One that is not valid yet was made while the clock was wrong, and is as useless as one that has expired.
  const isUnusable = nowMs < current.notBefore || nowMs >= useFrom(current);
  const isDue = isUnusable || nowMs >= current.notAfter - ANNOUNCE_DAYS * DAY_MS;
  if (!next) return isDue ? "make" : "keep";
  const isNextGood = next.notBefore <= nowMs && nowMs < next.notAfter - ANNOUNCE_DAYS * DAY_MS;
  if (!isDue || !isNextGood) return "drop";
  return isUnusable ? "use" : "keep";
}

type Validity = Pick<Certificate, "notBefore" | "notAfter"> & Partial<Pick<Certificate, "isSelfSigned">>;

/** The step that people have to take for a certificate that an authority signed. */
function renewalWords({ notAfter }: Certificate, nowMs: number): string | undefined {
  if (nowMs < notAfter - ANNOUNCE_DAYS * DAY_MS) return undefined;
  const ends = nowMs < notAfter ? "expires" : "expired";
  return `the collector's certificate, which the plant's authority signed, ${ends} on ${dayOf(notAfter)}: have it renewed there (sudo collector pki request FILE), and type: sudo collector pki import CERTIFICATE`;
}

function ownCertificate({ current, next, certificateFile, privateKeyFile }: OwnState, nowMs: number): OwnCertificate {
  const { applicationUri, der, thumbprint, notAfter } = current;
  if (applicationUri === undefined) throw new Error(`${certificateFile} holds no application URI; make a new identity: ${NEW_IDENTITY}`);
  const notice = !current.isSelfSigned
    ? renewalWords(current, nowMs)
    : next &&
      `the collector's certificate expires on ${dayOf(notAfter)}: trust the next one (thumbprint ${next.thumbprint}) at the OPC UA servers and clients; the collector uses it from ${dayOf(useFrom(current))} on; to hand it over, type: sudo collector pki export next.der --next`;
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
    // OpenSSL's words reveal nothing of the file's content.
    throw new Error(
      `${file}: ${sealed ? "the key has a passphrase; take it off (openssl pkey)" : `this is not a private key (${messageOf(error)})`}`,
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
