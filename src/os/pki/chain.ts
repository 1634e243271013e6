import type { KeyObject } from "node:crypto";
import type { Certificate } from "./certificate.ts";
import type { Kept } from "./store.ts";

/** Signatures that are checked for one certificate: the names in a chain of somebody else may be made to fit many. */
const MAX_CHECKS = 32;
/** Certificates above the one that is judged. */
const MAX_DEPTH = 6;

export interface Authorities {
  /** An authority among these makes what it has signed trusted. */
  readonly trusted: readonly Kept[];
  /** These and the certificates that the peer sent only fill the steps in between (OPC 10000-4, 6.1.3). */
  readonly known: readonly Certificate[];
}

/**
 * From `leaf`, not among them, up to an authority that is trusted, each signed by the next and valid now; undefined: there is no such way.
 * Signatures, names, validity and basicConstraints are checked here; `checkAuthorities` checks the rest of the authorities.
 */
export function pathTo(leaf: Certificate, { trusted, known }: Authorities, nowMs: number): readonly Certificate[] | undefined {
  const isValid = ({ notBefore, notAfter, isAuthority }: Certificate): boolean => isAuthority && notBefore <= nowMs && nowMs <= notAfter;
  const anchors = unique(trusted.map(({ certificate }) => certificate).filter(isValid));
  const steps = unique(known.filter(isValid));
  let checks = 0;
  const signed = (below: Certificate, above: Certificate): boolean => {
    if (above.thumbprint === below.thumbprint || !below.x509.checkIssued(above.x509)) return false;
    return ++checks <= MAX_CHECKS && isSigned(below, above.x509.publicKey);
  };
  const climb = (from: Certificate, way: readonly Certificate[]): readonly Certificate[] | undefined => {
    const anchor = anchors.find((above) => signed(from, above));
    if (anchor) return [...way, anchor];
    if (way.length >= MAX_DEPTH) return undefined;
    for (const above of steps) {
      if (way.includes(above) || !signed(from, above)) continue;
      const found = climb(above, [...way, above]);
      if (found) return found;
    }
    return undefined;
  };
  return climb(leaf, []);
}

function isSigned(below: Certificate, key: KeyObject): boolean {
  try {
    return below.x509.verify(key);
  } catch {
    return false;
  }
}

const unique = (certificates: readonly Certificate[]): readonly Certificate[] => [
  ...new Map(certificates.map((certificate) => [certificate.thumbprint, certificate])).values(),
];
