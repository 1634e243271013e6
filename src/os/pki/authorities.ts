import path from "node:path";
import type { X509Crl } from "@peculiar/x509";
import { escapeControls } from "../../base/plain-text.ts";
import { makePrivateFolder, namesIn, readIfThere, remove, replaceFile, stampOf } from "../../lib/files.ts";
import { messageOf } from "../../model/failure.ts";
import { type Certificate, dayOf } from "./certificate.ts";
import { loadX509 } from "./make.ts";

const MAX_CRL_BYTES = 1024 * 1024;
const MAX_CRLS = 50;

/** What of an authority's own extensions is understood here; another one that is marked critical makes it useless (RFC 5280, 4.2). */
const UNDERSTOOD = new Set([
  "2.5.29.14", // subject key identifier
  "2.5.29.15", // key usage
  "2.5.29.17", // subject alternative name
  "2.5.29.19", // basic constraints
  "2.5.29.31", // where its CRL is
  "2.5.29.32", // certificate policies
  "2.5.29.35", // authority key identifier
  "2.5.29.37", // extended key usage
]);

/**
 * What speaks against a way up that `pathTo` found, in words: an authority that may not have others below it, or says something critical that
 * is not understood here. Undefined: nothing. Only for certificates whose signatures are checked: they are taken apart by a library.
 */
export async function checkAuthorities(way: readonly Certificate[]): Promise<string | undefined> {
  const { X509Certificate, BasicConstraintsExtension } = await loadX509();
  for (const [below, authority] of way.entries()) {
    try {
      const parsed = new X509Certificate(new Uint8Array(authority.der));
      const limit = parsed.getExtension(BasicConstraintsExtension)?.pathLength;
      if (limit !== undefined && below > limit) return `the authority ${authority.subject} may not have ${below} authorities below it`;
      const strange = parsed.extensions.find(({ critical, type }) => critical && !UNDERSTOOD.has(type));
      if (strange) return `the authority ${authority.subject} has a critical extension that is not understood here (${strange.type})`;
    } catch (error) {
      return `the authority ${authority.subject} cannot be read: ${messageOf(error)}`;
    }
  }
  return undefined;
}

/** Lists of what authorities have revoked. */
export interface Revocations {
  /**
   * Words where `certificate`, signed by the first of `way` and so on upwards, or one of those is revoked; undefined: no list that is here says so.
   * Authorities without a list are believed: a machine in a plant cannot fetch one.
   */
  revoked(certificate: Certificate, way: readonly Certificate[]): Promise<string | undefined>;
  /**
   * Keeps a list (DER or PEM) that one of these authorities signed, in the place of an older one of the same authority. Rejects with Error for
   * people where none of them did, it is older than the one that is here, or it cannot be written.
   */
  add(bytes: Uint8Array, authorities: readonly Certificate[]): Promise<RevocationList>;
  /** The lists that can be used. */
  lists(): Promise<readonly RevocationList[]>;
  /** Files that cannot be used as they are now, in words. */
  problems(): Promise<readonly string[]>;
}

export interface RevocationList {
  readonly issuer: string;
  readonly file: string;
  /** Epoch ms; the next one is due then; undefined: the authority does not say. */
  readonly thisUpdate: number;
  readonly nextUpdate: number | undefined;
  readonly revoked: number;
}

/** The files `*.crl` in these folders, DER or PEM; new ones come into the last. */
export function createRevocations(folders: readonly [string, ...string[]]): Revocations {
  const parsed = new Map<string, { readonly stamp: string; readonly crl?: X509Crl; readonly problem?: string }>();

  const load = async (): Promise<{
    readonly crls: readonly X509Crl[];
    readonly files: readonly (readonly [file: string, crl: X509Crl])[];
    readonly problems: readonly string[];
  }> => {
    const problems: string[] = [];
    const files = folders.flatMap((folder) => {
      try {
        return namesIn(folder).flatMap((name) => (/\.crl$/i.test(name) ? [path.join(folder, name)] : []));
      } catch (error) {
        problems.push(`${folder} cannot be read: ${messageOf(error)}`);
        return [];
      }
    });
    if (files.length > MAX_CRLS) problems.push(`there are more than ${MAX_CRLS} revocation lists; those beyond are not looked at`);
    for (const file of parsed.keys()) if (!files.includes(file)) parsed.delete(file);
    for (const file of files.slice(0, MAX_CRLS)) {
      const stamp = stampOf(file) ?? "";
      if (parsed.get(file)?.stamp !== stamp) parsed.set(file, { stamp, ...(await readCrl(file)) });
    }
    const lists = [...parsed.values()];
    return {
      crls: lists.flatMap(({ crl }) => crl ?? []),
      files: [...parsed].flatMap(([file, { crl }]) => (crl ? [[file, crl] as const] : [])),
      problems: [...problems, ...lists.flatMap(({ problem }) => problem ?? [])],
    };
  };

  return {
    problems: async () => (await load()).problems,
    lists: async () => (await load()).files.map(([file, crl]) => listOf(file, crl)),
    async add(bytes, authorities) {
      const crl = await parseCrl(bytes);
      let signer: Certificate | undefined;
      for (const one of authorities) if (await isOf(crl, one)) signer ??= one;
      if (!signer)
        throw new Error(`no authority that is known here has signed this list of ${escapeControls(crl.issuer)}: trust the authority first`);
      const before = (await load()).files.filter(([, one]) => one.issuer === crl.issuer);
      const newest = before.find(([, one]) => one.thisUpdate > crl.thisUpdate);
      if (newest) throw new Error(`this list is of ${dayOf(crl.thisUpdate.getTime())}, and ${newest[0]} is newer`);
      const folder = folders.at(-1) ?? folders[0];
      makePrivateFolder(folder);
      const file = path.join(folder, `${signer.thumbprint}.crl`);
      replaceFile(file, new Uint8Array(crl.rawData));
      for (const [older] of before) if (older !== file) remove(older);
      return listOf(file, crl);
    },
    async revoked(certificate, way) {
      const { crls } = await load();
      for (const [i, authority] of way.entries()) {
        const below = way[i - 1] ?? certificate;
        for (const crl of crls) {
          const entry = crl.findRevoked(below.x509.serialNumber.toLowerCase());
          if (entry && (await isOf(crl, authority)))
            return `${below.subject} was revoked by ${authority.subject} on ${dayOf(entry.revocationDate.getTime())}`;
        }
      }
      return undefined;
    },
  };
}

const listOf = (file: string, { issuer, thisUpdate, nextUpdate, entries }: X509Crl): RevocationList => ({
  issuer: escapeControls(issuer),
  file,
  thisUpdate: thisUpdate.getTime(),
  nextUpdate: nextUpdate?.getTime(),
  revoked: entries.length,
});

/** Throws Error for what is not a list. */
async function parseCrl(bytes: Uint8Array): Promise<X509Crl> {
  const { X509Crl: Crl, PemConverter } = await loadX509();
  const text = Buffer.from(bytes).toString("latin1");
  try {
    return new Crl(text.includes("-----BEGIN") ? (PemConverter.decodeFirst(text) as ArrayBuffer) : new Uint8Array(bytes));
  } catch (error) {
    throw new Error(`this is not a revocation list (${messageOf(error)})`, { cause: error });
  }
}

async function readCrl(file: string): Promise<{ readonly crl?: X509Crl; readonly problem?: string }> {
  try {
    const bytes = readIfThere(file, MAX_CRL_BYTES);
    if (!bytes) return {};
    return { crl: await parseCrl(bytes) };
  } catch (error) {
    const words = messageOf(error);
    return { problem: words.includes(file) ? words : `${file}: ${words}` };
  }
}

async function isOf(crl: X509Crl, { der }: Certificate): Promise<boolean> {
  try {
    const { X509Certificate } = await loadX509();
    const authority = new X509Certificate(new Uint8Array(der));
    return authority.subject === crl.issuer && (await crl.verify({ publicKey: authority }));
  } catch {
    return false;
  }
}
