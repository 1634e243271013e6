import { stat } from "node:fs/promises";
import path from "node:path";
import type { Log } from "../model/context.ts";
import { messageOf } from "../model/failure.ts";
import type { PkiPlace } from "../model/pki.ts";
import { freeBytes } from "../os/machine.ts";
import type { Certificate } from "../os/pki/certificate.ts";
import { createPki } from "../os/pki/pki.ts";

/** When a certificate in the PKI folder ends. */
export interface CertificateEnd {
  /** own: the collector's; trusted: a device's or a client's; issuer: of an authority that is not trusted itself. */
  readonly kind: "own" | "trusted" | "issuer";
  /** Its subject. */
  readonly name: string;
  /** SHA-1, upper-case hex. */
  readonly thumbprint: string;
  /** Epoch ms. */
  readonly notAfterMs: number;
}

/** What the machine says beside the status. */
export interface MachineFigures {
  /** Undefined: it is not known. */
  readonly freeBytes: number | undefined;
  readonly certificates: readonly CertificateEnd[];
}

export const UNKNOWN_MACHINE: MachineFigures = { freeBytes: undefined, certificates: [] };

const LOOK_AT_CERTIFICATES_MS = 600_000;
/** Certificates in the figures: the first to end. */
const MAX_CERTIFICATES = 100;
const CERTIFICATE_FOLDERS = ["own", "trusted", "issuers"];

/** A disk that does not answer does not keep the other metrics waiting. */
const DISK_MS = 1000;

/** Looks at disk and certificates for the metrics, seldom enough to cost nothing. */
export class MachineLook {
  readonly #stateDir: string;
  readonly #pki: PkiPlace;
  readonly #log: Log;
  #certificates: readonly CertificateEnd[] = [];
  #lookedAtMs = Number.NEGATIVE_INFINITY;
  /** Times of change of the folders. */
  #stamp: string | undefined;
  #watching: Promise<void> | undefined;
  #asking: Promise<number | undefined> | undefined;

  constructor(stateDir: string, pki: PkiPlace, log: Log) {
    this.#stateDir = stateDir;
    this.#pki = pki;
    this.#log = log;
  }

  /** Never rejects, and takes a second at most. */
  async figures(): Promise<MachineFigures> {
    const certificates = this.certificates().slice(0, MAX_CERTIFICATES);
    return { freeBytes: await this.free(), certificates };
  }

  /** All certificates, the first to end first; read again where a folder has changed by the last call, and every ten minutes. */
  certificates(): readonly CertificateEnd[] {
    if (performance.now() - this.#lookedAtMs > LOOK_AT_CERTIFICATES_MS) this.#lookAtCertificates();
    this.#watching ??= this.#lookIfChanged().finally(() => {
      this.#watching = undefined;
    });
    return this.#certificates;
  }

  /** Never rejects; a disk that does not answer keeps only this waiting. */
  async #lookIfChanged(): Promise<void> {
    const times = await Promise.all(CERTIFICATE_FOLDERS.map((folder) => changedMs(path.join(this.#pki.dir, folder))));
    const stamp = times.join();
    if (stamp !== this.#stamp) this.#lookAtCertificates();
    this.#stamp = stamp;
  }

  /** Bytes that the disk of the state folder has left; undefined: it does not say. Never rejects, and takes a second at most. */
  async free(): Promise<number | undefined> {
    this.#asking ??= freeBytes(this.#stateDir).finally(() => {
      this.#asking = undefined;
    });
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<undefined>((done) => {
      timer = setTimeout(() => done(undefined), DISK_MS);
    });
    const free = await Promise.race([this.#asking, late]);
    clearTimeout(timer);
    return free;
  }

  #lookAtCertificates(): void {
    this.#lookedAtMs = performance.now();
    try {
      const { identity, trust } = createPki(this.#pki);
      const own = identity.look();
      const found = [
        ...(own ? [endOf("own", own.current)] : []),
        ...trust.trusted().kept.map(({ certificate }) => endOf("trusted", certificate)),
        ...trust.issuers().kept.map(({ certificate }) => endOf("issuer", certificate)),
      ];
      const distinct = new Map(found.map((one) => [`${one.kind} ${one.thumbprint}`, one]));
      this.#certificates = [...distinct.values()].sort((one, next) => one.notAfterMs - next.notAfterMs);
    } catch (error) {
      this.#log.debug({ error: messageOf(error) }, "the ends of certificates are not known");
    }
  }
}

/** Undefined: there is no such folder, or it may not be looked at. */
async function changedMs(folder: string): Promise<number | undefined> {
  try {
    return (await stat(folder)).mtimeMs;
  } catch {
    return undefined;
  }
}

const endOf = (kind: CertificateEnd["kind"], { subject, thumbprint, notAfter }: Certificate): CertificateEnd => ({
  kind,
  name: subject,
  thumbprint,
  notAfterMs: notAfter,
});
