import path from "node:path";
import type { X509Crl } from "@peculiar/x509";
import { namesIn, readIfThere, stampOf } from "../../lib/files.ts";
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
  /** Files that cannot be used as they are now, in words. */
  problems(): Promise<readonly string[]>;
}

/** The files `*.crl` in these folders, DER or PEM. */
export function createRevocations(folders: readonly string[]): Revocations {
  const parsed = new Map<string, { readonly stamp: string; readonly crl?: X509Crl; readonly problem?: string }>();

  const load = async (): Promise<{ readonly crls: readonly X509Crl[]; readonly problems: readonly string[] }> => {
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
      problems: [...problems, ...lists.flatMap(({ problem }) => problem ?? [])],
    };
  };

  return {
    problems: async () => (await load()).problems,
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

async function readCrl(file: string): Promise<{ readonly crl?: X509Crl; readonly problem?: string }> {
  try {
    const bytes = readIfThere(file, MAX_CRL_BYTES);
    if (!bytes) return {};
    const { X509Crl: Crl, PemConverter } = await loadX509();
    const text = bytes.toString("latin1");
    return { crl: new Crl(text.includes("-----BEGIN") ? (PemConverter.decodeFirst(text) as ArrayBuffer) : new Uint8Array(bytes)) };
  } catch (error) {
    const words = messageOf(error);
    return { problem: words.includes(file) ? words : `${file}: this is not a revocation list (${words})` };
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
