import path from "node:path";
import { escapeControls } from "../../base/plain-text.ts";
import { createFile, makePrivateFolder, remove } from "../../lib/files.ts";
import { createBudget } from "../../model/budget.ts";
import type { Log } from "../../model/context.ts";
import { messageOf } from "../../model/failure.ts";
import type { CertificateLife, JudgeOptions, TrustProblem, Verdict } from "../../model/pki.ts";
import { isForgiven, lastDayOf, lifeWarnings } from "../../model/words/certificate-life.ts";
import { checkAuthorities, createRevocations, type Revocations } from "./authorities.ts";
import { type Certificate, dayOf, namesHost, splitChain, thumbprintOf } from "./certificate.ts";
import { pathTo } from "./chain.ts";
import {
  createFolderReader,
  createForgiven,
  createPeers,
  createRejected,
  type Folder,
  type Forgiven,
  type Note,
  type Peers,
  type Rejected,
} from "./store.ts";

/** Of a peer's name that is kept and shown. */
const MAX_PEER = 300;
/** Notes on refused certificates, so that a flood of them does not become one of files: so many at once, then one each time it is filled. */
const NOTES_AT_ONCE = 20;
const NOTE_REFILL_MS = 1000;
/** A certificate that is refused again and again is noted this often. */
const NOTE_AGAIN_MS = 60_000;
/** Certificates that are tried with a server that does not show its own. */
const MAX_CANDIDATES = 4;
const SEEN_AGAIN_MS = 24 * 3_600_000;
/** Problems with files that are logged, in the life of the process. */
const MAX_REPORTED = 200;

export interface TrustOptions {
  /** The PKI folder. */
  readonly dir: string;
  readonly now: () => number;
  readonly log: Log;
}

/** With the peer, empty where it has no name. */
type Question = JudgeOptions & { readonly peer: string };

/**
 * Whom the collector trusts: the certificates in the folders, as people and the command line put them there. Several threads and processes
 * may use one folder; each change is one file.
 */
export class Trust {
  readonly trusted: () => Folder;
  readonly issuers: () => Folder;
  readonly rejected: Rejected;
  readonly peers: Peers;
  readonly forgiven: Forgiven;
  readonly revocations: Revocations;
  readonly #trustedFolder: string;
  readonly #now: () => number;
  readonly #log: Log;
  readonly #notes = createBudget(NOTES_AT_ONCE, NOTE_REFILL_MS, () => performance.now());
  readonly #reported = new Set<string>();
  /** Warnings of trusted certificates by code and thumbprint, with the day on which the log had them last. */
  readonly #warned = new Map<string, string>();

  constructor({ dir, now, log }: TrustOptions) {
    this.#trustedFolder = path.join(dir, "trusted");
    this.#now = now;
    this.#log = log;
    const issuersFolder = path.join(dir, "issuers");
    this.trusted = createFolderReader(this.#trustedFolder);
    this.issuers = createFolderReader(issuersFolder);
    this.rejected = createRejected(path.join(dir, "rejected"));
    this.peers = createPeers(path.join(dir, "peers"));
    this.forgiven = createForgiven(path.join(dir, "although-expired"));
    this.revocations = createRevocations([this.#trustedFolder, issuersFolder]);
  }

  /** Never rejects. */
  async judge(chain: readonly Uint8Array[], given: JudgeOptions): Promise<Verdict> {
    let options: Question = { ...given, peer: cut(given.peer ?? "") };
    let leaf: Certificate | undefined;
    try {
      const parsed = splitChain(chain);
      leaf = parsed[0];
      if (!leaf) throw new Error("no certificate came");
      if (given.peer === undefined) options = { ...given, peer: cut(leaf.uris[0] ?? "") };
      return await this.#judgeLeaf(parsed, leaf, options);
    } catch (error) {
      // A trust folder that cannot be read trusts nobody.
      if (leaf) {
        const words = `${introduction(leaf, options)} could not be judged: ${messageOf(error)}`;
        return { trusted: false, thumbprint: leaf.thumbprint, problem: "untrusted", words };
      }
      const thumbprint = chain[0] && chain[0].length > 0 ? thumbprintOf(chain[0]) : "";
      const words = `The ${options.of}${options.peer === "" ? "" : ` ${options.peer}`} shows a certificate that cannot be used: ${escapeControls(messageOf(error))}`;
      return { trusted: false, thumbprint, problem: "malformed", words };
    }
  }

  /** See `Pki.trustedFor`. */
  candidates({ peer = "", hosts = [] }: Pick<JudgeOptions, "peer" | "hosts">): readonly Certificate[] {
    const shown = this.peers.get("server", cut(peer))?.thumbprint;
    const rank = (certificate: Certificate): number =>
      certificate.thumbprint === shown ? 2 : hosts.some((host) => namesHost(certificate, host)) ? 1 : 0;
    return this.trusted()
      .kept.map(({ certificate }) => certificate)
      .filter(({ isAuthority }) => !isAuthority)
      .sort((a, b) => rank(b) - rank(a))
      .slice(0, MAX_CANDIDATES);
  }

  /**
   * A person trusts it; false: it was trusted already, in the same way. `forgivenUntil`: until then (epoch ms) although it expires before.
   * Throws the file system's error.
   */
  trust(certificate: Certificate, forgivenUntil?: number): boolean {
    const { thumbprint } = certificate;
    const before = this.forgiven.until(thumbprint);
    if (forgivenUntil === undefined) this.forgiven.remove(thumbprint);
    else this.forgiven.put(thumbprint, forgivenUntil, this.#iso());
    const isNew = this.#addTrusted(certificate);
    this.rejected.remove(thumbprint);
    return isNew || before !== forgivenUntil;
  }

  /** A person refuses it; false: it was refused already. Throws the file system's error. */
  reject(certificate: Certificate): boolean {
    const before = this.rejected.note(certificate.thumbprint);
    const peer = this.peers.list().find(({ thumbprint }) => thumbprint === certificate.thumbprint);
    const at = this.#iso();
    const known: Omit<Note, "by"> = before ?? { of: peer?.of ?? "server", peer: peer?.peer ?? "", first_seen: at, last_seen: at };
    // Add to rejected/ before removing from trusted/, so that it is always in one of them.
    this.rejected.put(certificate, { ...known, by: "person" });
    let wasTrusted = false;
    for (const { certificate: kept, file } of this.trusted().kept)
      if (kept.thumbprint === certificate.thumbprint) wasTrusted = remove(file) || wasTrusted;
    this.forgiven.remove(certificate.thumbprint);
    return wasTrusted || before?.by !== "person";
  }

  async #judgeLeaf(chain: readonly Certificate[], leaf: Certificate, options: Question): Promise<Verdict> {
    const command = `sudo collector pki trust ${leaf.thumbprint}`;
    if (this.rejected.note(leaf.thumbprint)?.by === "person")
      return this.#refuse(leaf, options, {
        problem: "rejected",
        words: "was rejected on this machine",
        whatNext: `To trust it anyway, type \`${command}\``,
      });
    const life = this.#lifeOf(leaf, options);
    const untimely = untimelyAt(this.#now(), leaf, life, options);
    if (untimely) return this.#refuse(leaf, options, untimely);
    const backing = await this.#backingOf(chain, leaf);
    if (backing === "trusted") {
      this.#remember(leaf, options);
      return this.#accept(leaf, options, life, false);
    }
    if (backing !== "unknown")
      return this.#refuse(leaf, options, {
        problem: backing.refused.problem,
        words: `is not trusted: ${backing.refused.words}`,
        whatNext: `Ask the operator of the authority, or trust this one alone: \`${command}\``,
      });
    return this.#judgeUnknown(leaf, options, life, command);
  }

  #lifeOf(leaf: Certificate, { of, peer }: Question): CertificateLife {
    const { subject, thumbprint, notAfter, weaknesses } = leaf;
    const forgivenUntil = this.#isTrustedItself(leaf) ? this.forgiven.until(thumbprint) : undefined;
    const holder = peer === "" ? of : `${of} ${peer}`;
    return { holder, subject, thumbprint, notAfter, weaknesses, ...(forgivenUntil !== undefined && { forgivenUntil }) };
  }

  #isTrustedItself = ({ thumbprint }: Certificate): boolean =>
    this.trusted().kept.some(({ certificate }) => certificate.thumbprint === thumbprint);

  /** The log has each warning of it once a day. */
  #accept(leaf: Certificate, { hosts = [] }: Question, life: CertificateLife, firstUse: boolean): Verdict {
    const today = this.#iso().slice(0, 10);
    for (const { code, text } of lifeWarnings(life, this.#now())) {
      const key = `${code} ${leaf.thumbprint}`;
      if (this.#warned.get(key) === today) continue;
      if (this.#warned.size >= MAX_REPORTED) this.#warned.clear();
      this.#warned.set(key, today);
      this.#log.warn({ thumbprint: leaf.thumbprint }, text);
    }
    return {
      trusted: true,
      thumbprint: leaf.thumbprint,
      firstUse,
      uris: leaf.uris,
      hosts: hosts.filter((host) => namesHost(leaf, host)),
      life,
    };
  }

  /** Nobody vouches for it: the peer's first certificate may be trusted on first use, another than before is refused. */
  #judgeUnknown(leaf: Certificate, options: Question, life: CertificateLife, command: string): Verdict {
    const { of, peer, trust } = options;
    const before = this.peers.get(of, peer);
    if (before && before.thumbprint !== leaf.thumbprint)
      return this.#refuse(leaf, options, {
        problem: "changed",
        words: `is not the one that this ${of} showed before (thumbprint ${before.thumbprint}, accepted since ${before.since.slice(0, 10)})${trust === "first_use" ? "; first_use accepts the first one only" : ""}`,
        whatNext: `If it was renewed there, type \`${command}\`. If it was not renewed, somebody may intercept the connection`,
      });
    // A known one that is no longer trusted was removed by a person: first use does not bring it back.
    // Nor does it trust one that would make others trusted.
    const isFirst = trust === "first_use" && !before && !leaf.isAuthority;
    if (isFirst && this.#trustFirst(leaf, options)) return this.#accept(leaf, options, life, true);
    const why = before
      ? "; first_use does not trust it a second time, because a person has removed it since"
      : leaf.isAuthority
        ? "; first_use does not trust it, because it is an authority: all that it signs would be trusted"
        : `; first_use does not trust it, because another one of this ${of} was accepted at the same moment`;
    return this.#refuse(leaf, options, {
      problem: "untrusted",
      words: `is not trusted on this machine${trust === "first_use" ? why : ""}`,
      whatNext: `If it is the right one, type \`${command}\``,
    });
  }

  /** False: another thread or process was first. Throws the file system's error. */
  #trustFirst(leaf: Certificate, { of, peer }: Question): boolean {
    if (!this.peers.putFirst({ of, peer, thumbprint: leaf.thumbprint, since: this.#iso(), seen: this.#iso() })) return false;
    this.#addTrusted(leaf);
    this.rejected.remove(leaf.thumbprint);
    this.#log.warn(
      { peer, thumbprint: leaf.thumbprint, subject: leaf.subject },
      "trusted a certificate because it is the first one from this peer; compare its thumbprint with the device's",
    );
    return true;
  }

  /** Whether somebody who is trusted vouches for it, or why an authority above it does not count. */
  async #backingOf(
    chain: readonly Certificate[],
    leaf: Certificate,
  ): Promise<"trusted" | "unknown" | { readonly refused: Omit<Refusal, "whatNext"> }> {
    const { kept, problems } = this.trusted();
    this.#report(problems);
    const known = this.issuers();
    this.#report(known.problems);
    const isItself = kept.some(({ certificate }) => certificate.thumbprint === leaf.thumbprint);
    if (!isItself && !kept.some(({ certificate }) => certificate.isAuthority)) return "unknown";
    // One that is trusted itself needs no authority; an authority that is known here may have revoked it nevertheless.
    const trusted = isItself ? [...kept, ...known.kept] : kept;
    const helpers = [...known.kept.map(({ certificate }) => certificate), ...chain.slice(1)];
    const way = pathTo(leaf, { trusted, known: helpers }, this.#now());
    if (!way) return isItself ? "trusted" : "unknown";
    const flaw = isItself ? undefined : await checkAuthorities(way);
    if (flaw !== undefined) return { refused: { problem: "untrusted", words: flaw } };
    const revoked = await this.revocations.revoked(leaf, way);
    this.#report(await this.revocations.problems());
    return revoked === undefined ? "trusted" : { refused: { problem: "revoked", words: revoked } };
  }

  #refuse(leaf: Certificate, options: Question, { problem, words: why, whatNext }: Refusal): Verdict {
    const kept = this.#note(leaf, options);
    const words = `${introduction(leaf, options)} ${why}.${kept} ${whatNext}`;
    return { trusted: false, thumbprint: leaf.thumbprint, problem, words };
  }

  /** Adds it to the rejected ones, which people see and decide on. Where that cannot be written, the words that it gives say so. */
  #note(certificate: Certificate, { of, peer }: Question): string {
    try {
      const before = this.rejected.note(certificate.thumbprint);
      if (before && this.#now() - Date.parse(before.last_seen) < NOTE_AGAIN_MS && before.peer === peer) return "";
      if (!this.#notes.take()) return " It is not listed among the rejected ones, because too many came at once.";
      const { first_seen = this.#iso(), by = "unknown" } = before ?? {};
      this.rejected.put(certificate, { of, peer, first_seen, last_seen: this.#iso(), by });
      return "";
    } catch (error) {
      return ` It cannot be listed among the rejected ones: ${messageOf(error)}.`;
    }
  }

  /** As the certificate of this peer, so that another one is noticed. */
  #remember(leaf: Certificate, { of, peer }: Question): void {
    try {
      const before = this.peers.get(of, peer);
      const isSame = before?.thumbprint === leaf.thumbprint;
      if (isSame && this.#now() - Date.parse(before.seen) < SEEN_AGAIN_MS) return;
      this.peers.put({ of, peer, thumbprint: leaf.thumbprint, since: isSame ? before.since : this.#iso(), seen: this.#iso() });
    } catch (error) {
      // A full disk must not cost a connection with somebody who is trusted.
      this.#log.warn({ err: error, peer }, "the certificate is trusted, but cannot be stored as this peer's");
    }
  }

  #addTrusted(certificate: Certificate): boolean {
    makePrivateFolder(this.#trustedFolder);
    return createFile(path.join(this.#trustedFolder, `${certificate.thumbprint}.der`), certificate.der);
  }

  /** Each problem once, and a bounded number of them. */
  #report(problems: readonly string[]): void {
    for (const problem of problems) {
      if (this.#reported.has(problem) || this.#reported.size > MAX_REPORTED) continue;
      this.#reported.add(problem);
      this.#log.warn({}, `cannot use a file of the PKI: ${problem}`);
    }
  }

  #iso(): string {
    return new Date(this.#now()).toISOString();
  }
}

/** Why a certificate is refused: `words` go on after its name, `whatNext` is what a person can do. */
interface Refusal {
  readonly problem: TrustProblem;
  readonly words: string;
  readonly whatNext: string;
}

/** Undefined: it is valid at this time (epoch ms), or a person trusts it although it has expired. Pure. */
function untimelyAt(
  nowMs: number,
  { notBefore, notAfter }: Certificate,
  life: CertificateLife,
  { of, trust }: Question,
): Refusal | undefined {
  const today = `the clock of this machine says ${minute(nowMs)}`;
  if (nowMs > notAfter && !isForgiven(life, nowMs)) {
    const { forgivenUntil, thumbprint } = life;
    const over =
      forgivenUntil === undefined
        ? ""
        : `; a person trusted it although expired until the end of ${lastDayOf(forgivenUntil)}, which is over`;
    const firstUse = trust === "first_use" && forgivenUntil === undefined ? "; first_use does not trust an expired one" : "";
    return {
      problem: "expired",
      words: `expired on ${dayOf(notAfter)}${over}${firstUse}; ${today}`,
      whatNext: `Renew the certificate at the ${of}, or set the clock right. Until it is renewed, \`sudo collector pki trust ${thumbprint} --although-expired-until DATE\` trusts it to the end of that day.`,
    };
  }
  if (nowMs < notBefore)
    return {
      problem: "not_yet_valid",
      words: `is not valid before ${minute(notBefore)}; ${today}`,
      whatNext: `Set the clock right, here or at the ${of}.`,
    };
  return undefined;
}

const minute = (ms: number): string => `${new Date(ms).toISOString().slice(0, 16)}Z`;

const introduction = ({ subject, thumbprint, notBefore, notAfter }: Certificate, { of, peer }: Question): string =>
  `The certificate of the ${of}${peer === "" ? "" : ` ${peer}`} (subject ${subject}, thumbprint ${thumbprint}, valid ${dayOf(notBefore)} to ${dayOf(notAfter)})`;

const cut = (peer: string): string => {
  const safe = escapeControls(peer);
  return safe.length > MAX_PEER ? `${safe.slice(0, MAX_PEER - 1)}…` : safe;
};
