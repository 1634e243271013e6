import { StatusCodes } from "node-opcua-client";
import { messageOf } from "../../model/failure.ts";
import type { CertificateLife, Pki, TrustProblem } from "../../model/pki.ts";
import { type Warning, warning } from "../../model/warning.ts";
import { isTrustOver, lifeWarnings } from "../../model/words/certificate-life.ts";

/** Refused client certificates that are remembered for the sink's warnings. */
const MAX_REFUSED = 10;
const JUDGE_TIMEOUT_MS = 5000;
/** Clients whose certificates are remembered, and those of which the warnings tell. */
const MAX_LIVES = 100;
const MAX_TOLD = 10;

type Code = (typeof StatusCodes)["Good"];

const STATUS: { readonly [P in TrustProblem]: Code } = {
  untrusted: StatusCodes.BadCertificateUntrusted,
  rejected: StatusCodes.BadCertificateUntrusted,
  changed: StatusCodes.BadCertificateUntrusted,
  expired: StatusCodes.BadCertificateTimeInvalid,
  not_yet_valid: StatusCodes.BadCertificateTimeInvalid,
  revoked: StatusCodes.BadCertificateRevoked,
  malformed: StatusCodes.BadCertificateInvalid,
};

export interface TrustOptions {
  readonly pki: Pki;
  /** A certificate is refused that was not refused just before; the words name it and the command that trusts it. */
  readonly onRefused: (words: string) => void;
  /** A certificate that was refused is trusted now. Absent: nobody asks. */
  readonly onTrusted?: (thumbprint: string) => void;
}

/** What node-opcua asks of a certificate manager (its ICertificateStore), and what the sink asks. */
export interface ClientTrust {
  /** Words on the certificates that were refused and are not trusted since; newest last. */
  refused(): readonly Warning[];
  /** Words on the certificates of clients that end soon or are weak, each client's last one. */
  lives(): readonly Warning[];
  /** Thumbprints of certificates that were trusted although expired, until a day that is over. */
  over(): ReadonlySet<string>;
  referenceCounter: number;
  initialize(): Promise<void>;
  dispose(): Promise<void>;
  checkCertificate(certificate: Buffer | Buffer[]): Promise<Code>;
  verifyCertificate(certificate: Buffer | Buffer[]): Promise<string>;
  trustCertificate(certificate: Buffer | Buffer[]): Promise<void>;
  rejectCertificate(certificate: Buffer | Buffer[]): Promise<void>;
  getTrustStatus(certificate: Buffer): Promise<Code>;
  addIssuer(certificate: Buffer): Promise<unknown>;
  addRevocationList(list: Buffer): Promise<unknown>;
}

/** The PKI of the collector decides and keeps; the library's folders are never made, and what would change a trust list is not done. */
export function createClientTrust({ pki, onRefused, onTrusted }: TrustOptions): ClientTrust {
  const refused = new Map<string, string>();
  const lives = new Map<string, CertificateLife>();

  const remember = (life: CertificateLife): void => {
    lives.delete(life.holder);
    lives.set(life.holder, life);
    const oldest = lives.keys().next().value;
    if (lives.size > MAX_LIVES && oldest !== undefined) lives.delete(oldest);
  };

  const note = (thumbprint: string, problem: TrustProblem, words: string): void => {
    const isNew = refused.get(thumbprint) !== words;
    refused.delete(thumbprint);
    // Whoever rejected it need not be reminded of it.
    if (problem === "rejected") return;
    refused.set(thumbprint, words);
    const oldest = refused.keys().next().value;
    if (refused.size > MAX_REFUSED && oldest !== undefined) refused.delete(oldest);
    if (isNew) onRefused(words);
  };

  const judge = async (certificate: Buffer | Buffer[]): Promise<Code> => {
    const chain = Array.isArray(certificate) ? certificate : [certificate];
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`no answer within ${JUDGE_TIMEOUT_MS} ms`)), JUDGE_TIMEOUT_MS);
    });
    try {
      const verdict = await Promise.race([pki.judge(chain, { of: "client", trust: "strict" }), late]);
      if (!verdict.trusted) {
        note(verdict.thumbprint, verdict.problem, verdict.words);
        return STATUS[verdict.problem];
      }
      remember(verdict.life);
      if (refused.delete(verdict.thumbprint)) onTrusted?.(verdict.thumbprint);
      return StatusCodes.Good;
    } catch (error) {
      onRefused(`the certificate of an OPC UA client could not be judged: ${messageOf(error)}`);
      return StatusCodes.BadCertificateUntrusted;
    } finally {
      clearTimeout(timer);
    }
  };

  const nothing = async (): Promise<void> => {};
  return {
    lives: () => [...lives.values()].flatMap((life) => lifeWarnings(life, Date.now())).slice(0, MAX_TOLD),
    over: () => new Set([...lives.values()].filter((life) => isTrustOver(life, Date.now())).map(({ thumbprint }) => thumbprint)),
    refused: () => [...refused].map(([thumbprint, words]) => warning("client_untrusted", words, thumbprint)),
    referenceCounter: 0,
    initialize: nothing,
    dispose: nothing,
    checkCertificate: judge,
    // Asked of the server's own certificate, which its owner has checked.
    verifyCertificate: async () => "Good",
    trustCertificate: nothing,
    rejectCertificate: nothing,
    getTrustStatus: judge,
    addIssuer: nothing,
    addRevocationList: nothing,
  };
}
