import path from "node:path";
import { messageOf } from "../../model/failure.ts";
import { parseCertificateFile, toPem } from "../../os/pki/certificate.ts";
import { keyId } from "../../os/pki/make.ts";
import { certificateWords, revocationWords } from "../../os/pki/overview.ts";
import { writeTo } from "../files.ts";
import { type CommandIo, type ExitCode, UsageError } from "../io.ts";
import { type PkiCommandOptions, readGiven, withPki } from "./pki.ts";
import { certificateLines, TELL_SERVER } from "./pki-words.ts";

const MAX_CRL_BYTES = 1024 * 1024;

/** `collector pki request`: a request for the plant's authority. Throws UsageError. */
export function pkiRequest(file: string, options: PkiCommandOptions & { readonly newKey?: boolean }, io: CommandIo): Promise<ExitCode> {
  let request = new Uint8Array();
  return withPki(
    options,
    io,
    async ({ pki }) => {
      request = new Uint8Array(await pki.identity.request(options.newKey ?? false));
      return undefined;
    },
    ({ print }) => {
      writeTo(file, /\.(pem|csr)$/i.test(file) ? toPem(request, "CERTIFICATE REQUEST") : request);
      print({ file: path.resolve(file), new_key: options.newKey ?? false }, [
        `Written to ${file}. The authority signs it, and has to keep its alternative names (the application URI).`,
        "Then type: sudo collector pki import CERTIFICATE",
      ]);
    },
  );
}

/** `collector pki import`: the certificate that the authority has signed becomes the collector's own. Throws UsageError. */
export function pkiImport(reference: string, options: PkiCommandOptions, io: CommandIo): Promise<ExitCode> {
  const { file, bytes } = readGiven(reference);
  return withPki(options, io, async ({ pki, print }) => {
    const found = orUsage(file, () => parseCertificateFile(bytes));
    const held = new Set(pki.identity.keys());
    const certificate = found.find(({ x509 }) => held.has(keyId(x509.publicKey))) ?? found[0];
    if (!certificate) throw new UsageError(`${file} holds no certificate`);
    const state = await pki.identity.import(certificate).catch((error: unknown) => {
      throw error instanceof Error && "code" in error ? error : new UsageError(`${file}: ${messageOf(error)}`);
    });
    const words = certificateWords(state.current);
    print({ ...words, file: state.certificateFile }, ["The collector's certificate is now:", ...certificateLines(words), ...TELL_SERVER]);
  });
}

/** `collector pki crl`: keeps what an authority has revoked. Throws UsageError. */
export function pkiCrl(reference: string, options: PkiCommandOptions, io: CommandIo): Promise<ExitCode> {
  const { file, bytes } = readGiven(reference, MAX_CRL_BYTES);
  return withPki(options, io, async ({ pki: { trust }, print }) => {
    const known = [...trust.trusted().kept, ...trust.issuers().kept]
      .map(({ certificate }) => certificate)
      .filter(({ isAuthority }) => isAuthority);
    const list = await trust.revocations.add(bytes, known).catch((error: unknown) => {
      throw error instanceof Error && "code" in error ? error : new UsageError(`${file}: ${messageOf(error)}`);
    });
    const words = revocationWords(list);
    print(words, [
      `Stored the revocation list of ${words.issuer}:`,
      `  of               ${words.of.slice(0, 10)}`,
      `  next one due     ${words.next_due?.slice(0, 10) ?? "not said"}`,
      `  revoked          ${words.revoked}`,
      "The next connection goes by it; no restart is needed.",
    ]);
  });
}

function orUsage<T>(file: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw new UsageError(`${file}: ${messageOf(error)}; give a certificate in DER or PEM`);
  }
}
