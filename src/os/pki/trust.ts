import path from "node:path";
import { createFile, makePrivateFolder, remove } from "../../lib/files.ts";
import { createBudget } from "../../model/budget.ts";
import type { Log } from "../../model/context.ts";
import { messageOf } from "../../model/failure.ts";
import type { JudgeOptions, TrustProblem, Verdict } from "../../model/pki.ts";
import { escapeControls } from "../log-text.ts";
import { checkAuthorities, createRevocations, type Revocations } from "./authorities.ts";
import { type Certificate, dayOf, namesHost, splitChain, thumbprintOf } from "./certificate.ts";
import { pathTo } from "./chain.ts";
import { createFolderReader, createPeers, createRejected, type Folder, type Note, type Peers, type Rejected } from "./store.ts";

/** Of a peer's name that is kept and shown. */
const MAX_PEER = 300;
/** Notes on refused certificates, so that a flood of them does not become one of files: so many at once, then one each time it is filled. */
const NOTES_AT_ONCE = 20;
const NOTE_REFILL_MS = 1000;
/** A certificate that is refused again and again is noted this often. */
const NOTE_AGAIN_MS = 60_000;
const SEEN_AGAIN_MS = 24 * 3_600_000;

export interface TrustOptions {
  /** The PKI folder. */
  readonly dir: string;
  readonly now: () => number;
  readonly log: Log;
}

/** Of a peer that is known, or is none. */
type Question = JudgeOptions & { readonly peer: string };

/** Whom the collector believes: what lies in the folders, as people and the command line leave it there. */
export interface Trust {
  /** Never throws. */
  judge(chain: readonly Uint8Array[], options: JudgeOptions): Promise<Verdict>;
  readonly trusted: () => Folder;
  readonly issuers: () => Folder;
  readonly rejected: Rejected;
  readonly peers: Peers;
  readonly revocations: Revocations;
  /** A person trusts it; false: it was trusted already. Throws the file system's error. */
  trust(certificate: Certificate): boolean;
  /** A person refuses it; false: it was refused already. Throws the file system's error. */
  reject(certificate: Certificate): boolean;
}

export function createTrust({ dir, now, log }: TrustOptions): Trust {
  const trustedFolder = path.join(dir, "trusted");
  const issuersFolder = path.join(dir, "issuers");
  const trusted = createFolderReader(trustedFolder);
  const issuers = createFolderReader(issuersFolder);
  const rejected = createRejected(path.join(dir, "rejected"));
  const peers = createPeers(path.join(dir, "peers"));
  const revocations = createRevocations([trustedFolder, issuersFolder]);
  const notes = createBudget(NOTES_AT_ONCE, NOTE_REFILL_MS, () => performance.now());
  const said = new Set<string>();
  const iso = (): string => new Date(now()).toISOString();

  const tellProblems = (problems: readonly string[]): void => {
    for (const problem of problems) {
      if (said.has(problem) || said.size > 200) continue;
      said.add(problem);
      log.warn({}, `a file of the PKI cannot be used: ${problem}`);
    }
  };

  /** What people see and decide on. Where it cannot be written the words alone have to do. */
  const note = (certificate: Certificate, { of, peer }: Question): string => {
    try {
      const before = rejected.note(certificate.thumbprint);
      if (before && now() - Date.parse(before.last_seen) < NOTE_AGAIN_MS && before.peer === peer) return "";
      if (!notes.take()) return " It is not kept among the rejected ones, because too many came at once.";
      const { first_seen = iso(), by = "unknown" } = before ?? {};
      rejected.put(certificate, { of, peer, first_seen, last_seen: iso(), by });
      return "";
    } catch (error) {
      return ` It cannot be kept among the rejected ones: ${messageOf(error)}.`;
    }
  };

  /** Why nobody who is trusted stands behind it, or that somebody does. */
  const belief = async (
    chain: readonly Certificate[],
    leaf: Certificate,
  ): Promise<"trusted" | "unknown" | { readonly refused: Refusal }> => {
    const { kept, problems } = trusted();
    tellProblems(problems);
    const known = issuers();
    tellProblems(known.problems);
    const isItself = kept.some(({ certificate }) => certificate.thumbprint === leaf.thumbprint);
    if (!isItself && !kept.some(({ certificate }) => certificate.isAuthority)) return "unknown";
    // One that is trusted itself needs nobody above it; who is known there may have revoked it all the same.
    const anchors = isItself ? [...kept, ...known.kept] : kept;
    const way = pathTo(leaf, { trusted: anchors, known: [...known.kept.map(({ certificate }) => certificate), ...chain.slice(1)] }, now());
    if (!way) return isItself ? "trusted" : "unknown";
    const flaw = isItself ? undefined : await checkAuthorities(way);
    if (flaw !== undefined) return { refused: { problem: "untrusted", words: flaw } };
    const revoked = await revocations.revoked(leaf, way);
    tellProblems(await revocations.problems());
    return revoked === undefined ? "trusted" : { refused: { problem: "revoked", words: revoked } };
  };

  const accept = (leaf: Certificate, { of, peer }: Question): void => {
    try {
      const before = peers.get(of, peer);
      const isSame = before?.thumbprint === leaf.thumbprint;
      if (isSame && now() - Date.parse(before.seen) < SEEN_AGAIN_MS) return;
      peers.put({ of, peer, thumbprint: leaf.thumbprint, since: isSame ? before.since : iso(), seen: iso() });
    } catch (error) {
      // A full disk must not cost a connection with somebody who is trusted.
      log.warn({ err: error, peer }, "the certificate is trusted, and cannot be remembered as this peer's");
    }
  };

  const addTrusted = (certificate: Certificate): boolean => {
    makePrivateFolder(trustedFolder);
    return createFile(path.join(trustedFolder, `${certificate.thumbprint}.der`), certificate.der);
  };

  const judgeLeaf = async (chain: readonly Certificate[], leaf: Certificate, options: Question): Promise<Verdict> => {
    const { of, peer, trust } = options;
    const refuse = (problem: TrustProblem, why: string, whatNext: string): Verdict => {
      const kept = note(leaf, options);
      const words = `${introduction(leaf, options)} ${why}.${kept} ${whatNext}`;
      return { trusted: false, thumbprint: leaf.thumbprint, problem, words };
    };
    const believe = (firstUse: boolean): Verdict => ({
      trusted: true,
      thumbprint: leaf.thumbprint,
      firstUse,
      uris: leaf.uris,
      hosts: (options.hosts ?? []).filter((host) => namesHost(leaf, host)),
    });
    const command = `sudo collector pki trust ${leaf.thumbprint}`;
    if (rejected.note(leaf.thumbprint)?.by === "person")
      return refuse("rejected", "was rejected on this machine", `To trust it all the same, type: ${command}`);
    const today = `the clock of this machine says ${new Date(now()).toISOString().slice(0, 16)}Z`;
    if (now() > leaf.notAfter)
      return refuse(
        "expired",
        `expired on ${dayOf(leaf.notAfter)}; ${today}`,
        `Renew the certificate at the ${of}, or set the clock right.`,
      );
    if (now() < leaf.notBefore)
      return refuse(
        "not_yet_valid",
        `is not valid before ${new Date(leaf.notBefore).toISOString().slice(0, 16)}Z; ${today}`,
        `Set the clock right, here or at the ${of}.`,
      );
    const believed = await belief(chain, leaf);
    if (believed === "trusted") {
      accept(leaf, options);
      return believe(false);
    }
    if (believed !== "unknown")
      return refuse(
        believed.refused.problem,
        `is not trusted: ${believed.refused.words}`,
        `Ask who runs the authority, or trust this one alone: ${command}`,
      );
    const before = peers.get(of, peer);
    if (before && before.thumbprint !== leaf.thumbprint)
      return refuse(
        "changed",
        `is not the one that this ${of} showed before (thumbprint ${before.thumbprint}, accepted since ${before.since.slice(0, 10)})`,
        `If it was renewed there, type: ${command}. If nobody knows of that, somebody may be in between`,
      );
    // Known but no longer trusted: a person took it away, and no first use brings it back.
    if (trust === "first_use" && !before) {
      if (peers.putFirst({ of, peer, thumbprint: leaf.thumbprint, since: iso(), seen: iso() })) {
        addTrusted(leaf);
        rejected.remove(leaf.thumbprint);
        log.warn(
          { peer, thumbprint: leaf.thumbprint, subject: leaf.subject },
          "a certificate is trusted because it is the first one seen here; compare its thumbprint with the device's",
        );
        return believe(true);
      }
    }
    return refuse("untrusted", "is not trusted on this machine", `If it is the right one, type: ${command}`);
  };

  return {
    trusted,
    issuers,
    rejected,
    peers,
    revocations,
    async judge(chain, given) {
      let options = { ...given, peer: cut(given.peer ?? "") };
      let leaf: Certificate | undefined;
      try {
        const parsed = splitChain(chain);
        leaf = parsed[0];
        if (!leaf) throw new Error("no certificate came");
        if (given.peer === undefined) options = { ...given, peer: cut(leaf.uris[0] ?? "") };
        return await judgeLeaf(parsed, leaf, options);
      } catch (error) {
        const thumbprint = leaf?.thumbprint ?? (chain[0] && chain[0].length > 0 ? thumbprintOf(chain[0]) : "");
        // A trust folder that cannot be read trusts nobody.
        if (leaf)
          return {
            trusted: false,
            thumbprint,
            problem: "untrusted",
            words: `${introduction(leaf, options)} could not be judged: ${messageOf(error)}`,
          };
        const words = `The ${options.of}${options.peer === "" ? "" : ` ${options.peer}`} shows a certificate that cannot be used: ${escapeControls(messageOf(error))}`;
        return { trusted: false, thumbprint, problem: "malformed", words };
      }
    },
    trust(certificate) {
      const isNew = addTrusted(certificate);
      rejected.remove(certificate.thumbprint);
      return isNew;
    },
    reject(certificate) {
      const before = rejected.note(certificate.thumbprint);
      const peer = peers.list().find(({ thumbprint }) => thumbprint === certificate.thumbprint);
      const at = iso();
      const known: Omit<Note, "by"> = before ?? { of: peer?.of ?? "server", peer: peer?.peer ?? "", first_seen: at, last_seen: at };
      // Refused first: at no moment is it neither.
      rejected.put(certificate, { ...known, by: "person" });
      let wasTrusted = false;
      for (const { certificate: kept, file } of trusted().kept)
        if (kept.thumbprint === certificate.thumbprint) wasTrusted = remove(file) || wasTrusted;
      return wasTrusted || before?.by !== "person";
    },
  };
}

interface Refusal {
  readonly problem: TrustProblem;
  readonly words: string;
}

const introduction = ({ subject, thumbprint, notBefore, notAfter }: Certificate, { of, peer }: Question): string =>
  `The certificate of the ${of}${peer === "" ? "" : ` ${peer}`} (subject ${subject}, thumbprint ${thumbprint}, valid ${dayOf(notBefore)} to ${dayOf(notAfter)})`;

const cut = (peer: string): string => {
  const safe = escapeControls(peer);
  return safe.length > MAX_PEER ? `${safe.slice(0, MAX_PEER - 1)}…` : safe;
};
