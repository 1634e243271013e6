import { createHash } from "node:crypto";
import path from "node:path";
import * as z from "zod";
import { createFile, isAbsent, makePrivateFolder, namesIn, readIfThere, remove, replaceFile, stampOf, sweep } from "../../lib/files.ts";
import { messageOf } from "../../model/failure.ts";
import { type Certificate, MAX_CERTIFICATE_BYTES, parseCertificateFile } from "./certificate.ts";

/** A certificate in one of the folders, and its file. */
export interface Kept {
  readonly certificate: Certificate;
  readonly file: string;
}

export interface Folder {
  readonly kept: readonly Kept[];
  /** Files that cannot be used, in words. */
  readonly problems: readonly string[];
}

/** Refused certificates that nobody has decided on; the oldest go first. */
export const MAX_REJECTED = 100;
/** Peers whose certificate is remembered; the ones not seen for longest go first. */
export const MAX_PEERS = 1000;
/** Of one folder; more than that nobody put there by hand. */
const MAX_FILES = 1000;
const MAX_JSON_BYTES = 16 * 1024;
const CERTIFICATE = /\.(der|cer|crt|pem)$/i;
/** Whoever connects can make the collector write these. */
const NOT_LASTING = { lasting: false } as const;
/** A change within the time stamps' grain would not show. */
const GRAIN_MS = 50;
const FRESH_MS = 1000;

/** A folder of certificates as people fill it: DER or PEM, under any name. Read again whenever something in it changes. */
export function createFolderReader(folder: string): () => Folder {
  const parsed = new Map<string, { readonly stamp: string; readonly kept: readonly Kept[]; readonly problem?: string }>();
  let last: { readonly at: number; readonly stamp: string | undefined; readonly isSettled: boolean; readonly result: Folder } | undefined;
  return () => {
    const at = performance.now();
    try {
      const stamp = stampOf(folder);
      // A file that is overwritten in place leaves the folder's stamp as it is: hence the time.
      if (last && last.stamp === stamp && last.isSettled && at - last.at < FRESH_MS) return last.result;
      const result = scan(folder, parsed);
      const changedMs = Number((stamp ?? "0").split(" ")[0]) / 1e6;
      last = { at, stamp, isSettled: Date.now() - changedMs > GRAIN_MS, result };
      return result;
    } catch (error) {
      last = undefined;
      return { kept: [], problems: [`${folder} cannot be read: ${messageOf(error)}`] };
    }
  };
}

function scan(
  folder: string,
  parsed: Map<string, { readonly stamp: string; readonly kept: readonly Kept[]; readonly problem?: string }>,
): Folder {
  const names = namesIn(folder).filter((name) => CERTIFICATE.test(name));
  const problems = names.length > MAX_FILES ? [`${folder} holds more than ${MAX_FILES} certificates; those beyond are not looked at`] : [];
  const files = names.slice(0, MAX_FILES).map((name) => path.join(folder, name));
  for (const file of parsed.keys()) if (!files.includes(file)) parsed.delete(file);
  const kept: Kept[] = [];
  for (const file of files) {
    const stamp = stampOf(file) ?? "";
    let entry = parsed.get(file);
    if (entry?.stamp !== stamp || stamp === "") {
      entry = { stamp, ...readCertificates(file) };
      parsed.set(file, entry);
    }
    kept.push(...entry.kept);
    if (entry.problem !== undefined) problems.push(entry.problem);
  }
  return { kept, problems };
}

function readCertificates(file: string): { readonly kept: readonly Kept[]; readonly problem?: string } {
  try {
    const bytes = readIfThere(file, MAX_CERTIFICATE_BYTES * 2);
    return { kept: bytes ? parseCertificateFile(bytes).map((certificate) => ({ certificate, file })) : [] };
  } catch (error) {
    const words = messageOf(error);
    return { kept: [], problem: words.includes(file) ? words : `${file}: ${words}` };
  }
}

const text = z.string().max(2000);
const noteSchema = z.object({
  of: z.enum(["server", "client"]),
  peer: text,
  first_seen: text,
  last_seen: text,
  /** unknown: nobody has decided; person: somebody refused it. */
  by: z.enum(["unknown", "person"]),
});
/** What is known of a refused certificate. */
export type Note = z.infer<typeof noteSchema>;

export interface Refused extends Kept {
  readonly note: Note | undefined;
}

/** The folder `rejected`: `<thumbprint>.der` with what is known of it in `<thumbprint>.json`. */
export interface Rejected {
  list(): { readonly refused: readonly Refused[]; readonly problems: readonly string[] };
  note(thumbprint: string): Note | undefined;
  /** Throws the file system's error. */
  put(certificate: Certificate, note: Note): void;
  /** Throws the file system's error. */
  remove(thumbprint: string): void;
}

export function createRejected(folder: string): Rejected {
  const read = createFolderReader(folder);
  const noteFile = (thumbprint: string): string => path.join(folder, `${thumbprint}.json`);
  const note = (thumbprint: string): Note | undefined => readJson(noteFile(thumbprint), noteSchema);

  /** Undecided ones only; those of clients, of which anybody can show any number, before those of servers, which somebody has configured. */
  const makeRoom = (): void => {
    const names = namesIn(folder).flatMap((name) => /^([0-9A-F]{40})\.der$/.exec(name)?.[1] ?? []);
    if (names.length < MAX_REJECTED) return;
    sweep(folder);
    const undecided = names.map((thumbprint) => ({ thumbprint, note: note(thumbprint) })).filter((entry) => entry.note?.by !== "person");
    const rank = (found: Note | undefined): number => (found?.of === "server" ? 1 : 0);
    undecided.sort(
      (a, b) =>
        rank(a.note) - rank(b.note) || compare(a.note?.last_seen ?? "", b.note?.last_seen ?? "") || compare(a.thumbprint, b.thumbprint),
    );
    for (const { thumbprint } of undecided.slice(0, Math.max(0, undecided.length + 1 - MAX_REJECTED))) forget(thumbprint);
  };

  const forget = (thumbprint: string): void => {
    remove(path.join(folder, `${thumbprint}.der`));
    remove(noteFile(thumbprint));
  };

  return {
    list() {
      const { kept, problems } = read();
      return { refused: kept.map((entry) => ({ ...entry, note: note(entry.certificate.thumbprint) })), problems };
    },
    note,
    put(certificate, told) {
      makePrivateFolder(folder);
      const file = path.join(folder, `${certificate.thumbprint}.der`);
      if (stampOf(file) === undefined) makeRoom();
      replaceFile(noteFile(certificate.thumbprint), JSON.stringify(told), NOT_LASTING);
      createFile(file, certificate.der, NOT_LASTING);
    },
    remove(thumbprint) {
      for (const { certificate, file } of read().kept) if (certificate.thumbprint === thumbprint) remove(file);
      forget(thumbprint);
    },
  };
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

const peerSchema = z.object({ of: z.enum(["server", "client"]), peer: text, thumbprint: z.string().max(64), since: text, seen: text });
export type Peer = z.infer<typeof peerSchema>;

/** Which certificate of whom was accepted last, a file each in the folder `peers`: several processes remember at the same moment. */
export interface Peers {
  get(of: Peer["of"], peer: string): Peer | undefined;
  /** Throws the file system's error. */
  put(peer: Peer): void;
  /** False: another certificate of this peer is remembered already. Throws the file system's error. */
  putFirst(peer: Peer): boolean;
  list(): readonly Peer[];
}

export function createPeers(folder: string): Peers {
  const fileOf = (of: Peer["of"], peer: string): string =>
    path.join(folder, `${createHash("sha256").update(`${of}\n${peer}`).digest("hex").slice(0, 32)}.json`);
  const all = (): readonly { readonly file: string; readonly peer: Peer | undefined }[] =>
    namesIn(folder)
      .filter((name) => name.endsWith(".json"))
      .map((name) => ({ file: path.join(folder, name), peer: readJson(path.join(folder, name), peerSchema) }));
  const makeRoom = (): void => {
    const count = namesIn(folder).length;
    if (count < MAX_PEERS) return;
    const oldest = [...all()].sort((a, b) => compare(a.peer?.seen ?? "", b.peer?.seen ?? ""));
    // More than one at once, so that not each new peer costs a look at all.
    for (const { file } of oldest.slice(0, count - MAX_PEERS + 1 + MAX_PEERS / 20)) remove(file);
  };
  const ready = (file: string): void => {
    makePrivateFolder(folder);
    if (stampOf(file) === undefined) makeRoom();
  };
  const get = (of: Peer["of"], peer: string): Peer | undefined => {
    const found = readJson(fileOf(of, peer), peerSchema);
    return found?.peer === peer && found.of === of ? found : undefined;
  };
  return {
    get,
    put(peer) {
      const file = fileOf(peer.of, peer.peer);
      ready(file);
      replaceFile(file, JSON.stringify(peer));
    },
    putFirst(peer) {
      const file = fileOf(peer.of, peer.peer);
      ready(file);
      if (createFile(file, JSON.stringify(peer))) return true;
      return get(peer.of, peer.peer)?.thumbprint === peer.thumbprint;
    },
    list: () => all().flatMap(({ peer }) => (peer ? [peer] : [])),
  };
}

const forgivenSchema = z.object({ until: z.int(), since: text });

/** Certificates that a person trusts for a while although they expire, a file each in the folder `although-expired`. */
export interface Forgiven {
  /** Epoch ms. */
  until(thumbprint: string): number | undefined;
  /** Throws the file system's error. */
  put(thumbprint: string, untilMs: number, since: string): void;
  /** False: there was none. Throws the file system's error. */
  remove(thumbprint: string): boolean;
}

export function createForgiven(folder: string): Forgiven {
  const fileOf = (thumbprint: string): string => path.join(folder, `${thumbprint}.json`);
  return {
    until: (thumbprint) => readJson(fileOf(thumbprint), forgivenSchema)?.until,
    put(thumbprint, untilMs, since) {
      makePrivateFolder(folder);
      replaceFile(fileOf(thumbprint), JSON.stringify({ until: untilMs, since }));
    },
    remove: (thumbprint) => remove(fileOf(thumbprint)),
  };
}

/** Undefined where there is none or it is not what it should be: it is then written again. Throws Error where it cannot be read. */
function readJson<T>(file: string, schema: z.ZodType<T>): T | undefined {
  let content: unknown;
  try {
    content = JSON.parse(readIfThere(file, MAX_JSON_BYTES)?.toString("utf8") ?? "null");
  } catch (error) {
    if (error instanceof SyntaxError || isAbsent(error)) return undefined;
    throw error;
  }
  const parsed = schema.safeParse(content);
  return parsed.success ? parsed.data : undefined;
}
