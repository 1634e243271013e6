import type { VerbGroup } from "../verb.ts";
import type { PkiCommandOptions } from "./pki.ts";

const CERTIFICATE = "the beginning of a thumbprint that pki list shows, or a file (DER or PEM)";

/** `collector pki …`. */
export const PKI_VERBS: VerbGroup = {
  name: "pki",
  description: "Show and change the OPC UA certificates: the collector's own and the trusted ones.",
  verbs: [
    {
      usage: "list",
      description: "Show the collector's own certificate, and those that are trusted and rejected.",
      examples: ["sudo collector pki list", "sudo collector pki list --json | jq -r .own.thumbprint"],
      run: async (io, options: PkiCommandOptions) => (await import("./pki.ts")).pkiList(options, io),
    },
    {
      usage: "trust <certificate>",
      description: "Trust a server, a client or an authority, by the beginning of a rejected thumbprint or by a file (DER or PEM).",
      args: { certificate: CERTIFICATE },
      examples: [
        "sudo collector pki trust 5375AE78F4F5EA72",
        "sudo collector pki trust plant-ca.pem",
        "sudo collector pki trust between.der --issuer",
        "sudo collector pki trust 5375AE78F4F5EA72 --although-expired-until 2027-01-31",
      ],
      options: [
        { flags: "--issuer", description: "store an intermediate authority, which is not trusted itself" },
        {
          flags: "--although-expired-until <date>",
          description: "trust it to the end of that day (UTC) although it expires before; one year from now at most",
        },
      ],
      run: async (io, certificate: string, options: PkiCommandOptions & { issuer?: boolean; althoughExpiredUntil?: string }) =>
        (await import("./pki.ts")).pkiTrust(certificate, options, io),
    },
    {
      usage: "reject <certificate>",
      description: "Stop trusting a certificate, or refuse a waiting one.",
      args: { certificate: CERTIFICATE },
      examples: ["sudo collector pki reject 5375AE78F4F5EA72", "sudo collector pki reject old-server.der"],
      run: async (io, certificate: string, options: PkiCommandOptions) => (await import("./pki.ts")).pkiReject(certificate, options, io),
    },
    {
      usage: "renew",
      description: "Replace the collector's own certificate now; key and application URI stay.",
      examples: ["sudo collector pki renew", "sudo collector pki renew --new-key    if others may have seen the key"],
      options: [{ flags: "--new-key", description: "with a new key" }],
      run: async (io, options: PkiCommandOptions & { newKey?: boolean }) => (await import("./pki.ts")).pkiRenew(options, io),
    },
    {
      usage: "export [file]",
      description: "Write the collector's certificate, without its key: DER, or PEM for *.pem and without a file.",
      args: { file: "file to write; absent: the terminal" },
      examples: ["sudo collector pki export collector.der", "sudo collector pki export | openssl x509 -noout -text"],
      options: [{ flags: "--next", description: "the next certificate, before it is used" }],
      run: async (io, file: string | undefined, options: PkiCommandOptions & { next?: boolean }) =>
        (await import("./pki.ts")).pkiExport(file, options, io),
    },
    {
      usage: "request <file>",
      description: "Write a request (CSR) for the plant's authority to sign the collector's certificate: DER, or PEM for *.pem and *.csr.",
      args: { file: "file to write" },
      examples: ["sudo collector pki request collector.csr", "sudo collector pki request collector.der --new-key"],
      options: [{ flags: "--new-key", description: "for a new key, which is used once its certificate is imported" }],
      run: async (io, file: string, options: PkiCommandOptions & { newKey?: boolean }) =>
        (await import("./pki-authority.ts")).pkiRequest(file, options, io),
    },
    {
      usage: "import <certificate>",
      description: "Use a certificate that the plant's authority has signed as the collector's own.",
      args: { certificate: "file of the certificate (DER or PEM); others in it are left out" },
      examples: ["sudo collector pki import collector.pem"],
      run: async (io, certificate: string, options: PkiCommandOptions) =>
        (await import("./pki-authority.ts")).pkiImport(certificate, options, io),
    },
    {
      usage: "crl <file>",
      description: "Store what an authority has revoked; its older list goes.",
      args: { file: "revocation list (DER or PEM) of an authority that is known here" },
      examples: ["sudo collector pki crl plant-ca.crl"],
      run: async (io, file: string, options: PkiCommandOptions) => (await import("./pki-authority.ts")).pkiCrl(file, options, io),
    },
    {
      usage: "user <name> <certificate> <key>",
      description: "Store a certificate and its key (PEM) with which data sources log in at OPC UA servers.",
      args: {
        name: "name for user_certificate in a data source's settings; the default is user",
        certificate: "file of the certificate (DER or PEM)",
        key: "file of its private key (PEM, without a passphrase)",
      },
      examples: ["sudo collector pki user user reader.pem reader.key.pem", "sudo collector pki user line-2 reader.der reader.key.pem"],
      run: async (io, name: string, certificate: string, key: string, options: PkiCommandOptions) =>
        (await import("./pki.ts")).pkiUser(name, certificate, key, options, io),
    },
  ],
};
