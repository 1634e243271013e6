import type { Command } from "commander";
import type { CommandIo, ExitCode } from "../io.ts";
import { actionsTo, addVerb, type VerbHelp } from "../verb.ts";
import type { PkiCommandOptions } from "./pki.ts";

const ARGS = {
  certificate: "the beginning of a thumbprint that pki list shows, or a file (DER or PEM)",
} as const;

/** The verbs over the certificates and their help, each loaded when it is called. `done` takes what a verb ended with. */
export function addPkiVerbs(program: Command, io: CommandIo, done: (code: ExitCode) => void): void {
  const pki = program.command("pki").description("Show and change the OPC UA certificates: the collector's own and the trusted ones.");
  const verb = (usage: string, help: VerbHelp): Command => addVerb(pki, usage, { args: ARGS, ...help });
  const run = actionsTo(done);

  verb("list", {
    description: "Show the collector's own certificate, and those that are trusted and rejected.",
    examples: ["sudo collector pki list", "sudo collector pki list --json | jq -r .own.thumbprint"],
  }).action(run(async (options: PkiCommandOptions) => (await import("./pki.ts")).pkiList(options, io)));
  verb("trust <certificate>", {
    description: "Trust a server, a client or an authority, by the beginning of a rejected thumbprint or by a file (DER or PEM).",
    examples: [
      "sudo collector pki trust 5375AE78F4F5EA72",
      "sudo collector pki trust plant-ca.pem",
      "sudo collector pki trust between.der --issuer",
    ],
  })
    .option("--issuer", "store an intermediate authority, which is not trusted itself")
    .action(
      run(async (certificate: string, options: PkiCommandOptions & { issuer?: boolean }) =>
        (await import("./pki.ts")).pkiTrust(certificate, options, io),
      ),
    );
  verb("reject <certificate>", {
    description: "Stop trusting a certificate, or refuse a waiting one.",
    examples: ["sudo collector pki reject 5375AE78F4F5EA72", "sudo collector pki reject old-server.der"],
  }).action(run(async (certificate: string, options: PkiCommandOptions) => (await import("./pki.ts")).pkiReject(certificate, options, io)));
  verb("renew", {
    description: "Replace the collector's own certificate now; key and application URI stay.",
    examples: ["sudo collector pki renew", "sudo collector pki renew --new-key    if others may have seen the key"],
  })
    .option("--new-key", "with a new key")
    .action(run(async (options: PkiCommandOptions & { newKey?: boolean }) => (await import("./pki.ts")).pkiRenew(options, io)));
  verb("export [file]", {
    description: "Write the collector's certificate, without its key: DER, or PEM for *.pem and without a file.",
    args: { file: "file to write; absent: the terminal" },
    examples: ["sudo collector pki export collector.der", "sudo collector pki export | openssl x509 -noout -text"],
  })
    .option("--next", "the next certificate, before it is used")
    .action(
      run(async (file: string | undefined, options: PkiCommandOptions & { next?: boolean }) =>
        (await import("./pki.ts")).pkiExport(file, options, io),
      ),
    );
  verb("user <name> <certificate> <key>", {
    description: "Store a certificate and its key (PEM) with which data sources log in at OPC UA servers.",
    args: {
      name: "name for user_certificate in a data source's settings; the default is user",
      certificate: "file of the certificate (DER or PEM)",
      key: "file of its private key (PEM, without a passphrase)",
    },
    examples: ["sudo collector pki user user reader.pem reader.key.pem", "sudo collector pki user line-2 reader.der reader.key.pem"],
  }).action(
    run(async (name: string, certificate: string, key: string, options: PkiCommandOptions) =>
      (await import("./pki.ts")).pkiUser(name, certificate, key, options, io),
    ),
  );
}
