/** The collector's own application instance certificate (OPC 10000-6, 6.2.2): one for the driver and the hosted server, stable over restarts. */
export interface OwnCertificate extends UserCertificate {
  /** The URI in its subject alternative names; made from the installation id, never from the host name. */
  readonly applicationUri: string;
  /** SHA-1 over the DER, upper-case hex: what OPC UA tools show. */
  readonly thumbprint: string;
  /** Epoch ms. */
  readonly notAfter: number;
  /** What people should know although it works, for a warning: another certificate follows soon, and servers have to trust it by then. */
  readonly notice?: string;
}

/** Why a certificate is not accepted. `changed`: this endpoint showed another one before, and that one was trusted. */
export type TrustProblem = "untrusted" | "rejected" | "changed" | "expired" | "not_yet_valid" | "revoked" | "malformed";

/** How long a certificate lasts, and how strong it is. */
export interface CertificateLife {
  /** The other side in words, such as `server opc.tcp://10.0.0.7:4840`. */
  readonly holder: string;
  readonly subject: string;
  /** SHA-1 over the DER, upper-case hex. */
  readonly thumbprint: string;
  /** Epoch ms. */
  readonly notAfter: number;
  /** Epoch ms: a person trusts it until then although it expires before. Absent: its own end counts. */
  readonly forgivenUntil?: number;
  /** Keys and signatures that others may break, in words. */
  readonly weaknesses: readonly string[];
}

export type Verdict =
  | {
      readonly trusted: true;
      readonly thumbprint: string;
      /** It became trusted just now, because the settings say so. */
      readonly firstUse: boolean;
      /** The URIs among its subject alternative names, as they are; the first one is its application URI (OPC 10000-6, 6.2.2). */
      readonly uris: readonly string[];
      /** Of the hosts that were asked for, those that it names. */
      readonly hosts: readonly string[];
      readonly life: CertificateLife;
    }
  /** `words` name the certificate (subject, thumbprint, validity) and the command that trusts it. */
  | { readonly trusted: false; readonly thumbprint: string; readonly problem: TrustProblem; readonly words: string };

export interface JudgeOptions {
  /** Whose it is. */
  readonly of: "server" | "client";
  /** What remembers which certificate was accepted here: an endpoint URL. Absent: the application URI of the certificate itself. */
  readonly peer?: string;
  /** Names and addresses that are looked for in it. */
  readonly hosts?: readonly string[];
  /** first_use: the first certificate of a peer becomes trusted; a later, different one does not. */
  readonly trust: "strict" | "first_use";
}

export interface UserCertificate {
  /** PEM; the file of the key is readable by the service alone. */
  readonly certificateFile: string;
  readonly privateKeyFile: string;
  /** DER. */
  readonly certificate: Uint8Array;
}

/** The PKI folder under the state folder: who the collector is, and whom it trusts (OPC 10000-4, 6.1.3). */
export interface Pki {
  /** Made when first asked for, renewed before it expires without a new identity. Throws Error where the folder cannot be written. */
  own(): Promise<OwnCertificate>;
  /** DER certificates, the peer's own first. What is not trusted is kept among the rejected ones, for a person to decide. Never throws. */
  judge(chain: readonly Uint8Array[], options: JudgeOptions): Promise<Verdict>;
  /**
   * Trusted certificates, DER, that may be this server's, which does not show its own before a channel is secured with it: the one that it
   * showed before, those that name one of its hosts, others; four at most. It has to be judged nevertheless. Never throws.
   */
  trustedFor(server: Pick<JudgeOptions, "peer" | "hosts">): Promise<readonly Uint8Array[]>;
  /** The user certificate that a data source logs in with. Throws Error that names the files that are missing. */
  user(name: string): Promise<UserCertificate>;
}

/** The place where the PKI folder is, for a worker to open it by itself. */
export interface PkiPlace {
  readonly dir: string;
  /** Uuid of this installation: of it the application URI is made. */
  readonly installation: string;
}
