import path from "node:path";
import { namesIn } from "../../lib/files.ts";
import { messageOf } from "../../model/failure.ts";
import { lifeNotes } from "../../model/words/certificate-life.ts";
import type { RevocationList } from "./authorities.ts";
import type { Certificate } from "./certificate.ts";
import type { OpenPki } from "./pki.ts";

/** A certificate in words, as `collector pki list --json` prints it. */
export interface CertificateWords {
  readonly subject: string;
  /** SHA-1, upper-case hex. */
  readonly thumbprint: string;
  readonly application_uri: string | null;
  /** ISO 8601 UTC. */
  readonly valid_from: string;
  readonly valid_to: string;
  /** Words for a person: it ends soon, has expired, is trusted although expired, is weak. */
  readonly notes: readonly string[];
}

export interface TrustedWords extends CertificateWords {
  readonly file: string;
  /** It signs others, which are trusted with it. */
  readonly authority: boolean;
  /** Who has shown it: endpoints of servers, application URIs of clients. */
  readonly peers: readonly string[];
}

export interface RejectedWords extends CertificateWords {
  readonly file: string;
  readonly of: "server" | "client" | null;
  readonly peer: string | null;
  readonly first_seen: string | null;
  readonly last_seen: string | null;
  /** unknown: nobody has decided yet; person: somebody has refused it. */
  readonly by: "unknown" | "person";
}

export interface RevocationWords {
  readonly issuer: string;
  readonly file: string;
  /** ISO 8601 UTC; null: the authority does not say when the next one is due. */
  readonly of: string;
  readonly next_due: string | null;
  readonly revoked: number;
}

export const revocationWords = ({ issuer, file, thisUpdate, nextUpdate, revoked }: RevocationList): RevocationWords => ({
  issuer,
  file,
  of: new Date(thisUpdate).toISOString(),
  next_due: nextUpdate === undefined ? null : new Date(nextUpdate).toISOString(),
  revoked,
});

/** The content of the PKI folder. */
export interface PkiOverview {
  readonly folder: string;
  /** Null: it is made when it is first needed. */
  readonly own: (CertificateWords & { readonly file: string; readonly host_names: readonly string[] }) | null;
  /** Follows it before it expires; null: it is not yet time. */
  readonly next: CertificateWords | null;
  readonly trusted: readonly TrustedWords[];
  readonly rejected: readonly RejectedWords[];
  readonly issuers: readonly (CertificateWords & { readonly file: string })[];
  readonly revocation_lists: readonly RevocationWords[];
  readonly users: readonly (CertificateWords & { readonly name: string })[];
  /** What cannot be used, in words. */
  readonly problems: readonly string[];
}

/** `forgivenUntil`: a person trusts it until then (epoch ms) although it expires before. */
export const certificateWords = (certificate: Certificate, forgivenUntil?: number): CertificateWords => {
  const { subject, thumbprint, applicationUri, notBefore, notAfter } = certificate;
  return {
    subject,
    thumbprint,
    application_uri: applicationUri ?? null,
    valid_from: new Date(notBefore).toISOString(),
    valid_to: new Date(notAfter).toISOString(),
    notes: lifeNotes({ ...certificate, ...(forgivenUntil !== undefined && { forgivenUntil }) }, Date.now()),
  };
};

/** Reads the whole PKI folder `dir`, and writes nothing. Throws the file system's error where it may not be read. */
export async function overviewOf(dir: string, { identity, trust, userCertificate }: OpenPki): Promise<PkiOverview> {
  const problems: string[] = [];
  // A folder that may not be read would look like an empty one.
  for (const folder of ["own", "trusted", "rejected", "issuers", "users"]) namesIn(path.join(dir, folder));
  let own: ReturnType<typeof identity.look>;
  try {
    own = identity.look();
  } catch (error) {
    problems.push(messageOf(error));
  }
  const peers = trust.peers.list();
  const { refused, problems: refusedProblems } = trust.rejected.list();
  const [trusted, issuers] = [trust.trusted(), trust.issuers()];
  const users = namesIn(path.join(dir, "users")).flatMap((file) => {
    const name = /^(.*?)(?<!\.key)\.pem$/.exec(file)?.[1];
    if (name === undefined) return [];
    try {
      return [{ name, ...certificateWords(userCertificate(name)) }];
    } catch (error) {
      problems.push(messageOf(error));
      return [];
    }
  });
  return {
    folder: dir,
    own: own ? { ...certificateWords(own.current), file: own.certificateFile, host_names: own.current.hostNames } : null,
    next: own?.next ? certificateWords(own.next) : null,
    trusted: trusted.kept.map(({ certificate, file }) => ({
      ...certificateWords(certificate, trust.forgiven.until(certificate.thumbprint)),
      file,
      authority: certificate.isAuthority,
      peers: peers.filter(({ thumbprint }) => thumbprint === certificate.thumbprint).map(({ peer }) => peer),
    })),
    rejected: refused.map(({ certificate, file, note }) => ({
      ...certificateWords(certificate),
      file,
      of: note?.of ?? null,
      peer: note?.peer ?? null,
      first_seen: note?.first_seen ?? null,
      last_seen: note?.last_seen ?? null,
      by: note?.by ?? "unknown",
    })),
    issuers: issuers.kept.map(({ certificate, file }) => ({ ...certificateWords(certificate), file })),
    revocation_lists: (await trust.revocations.lists()).map(revocationWords),
    users,
    problems: [...problems, ...trusted.problems, ...refusedProblems, ...issuers.problems, ...(await trust.revocations.problems())],
  };
}
