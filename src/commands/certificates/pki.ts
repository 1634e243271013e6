import { existsSync, statSync } from "node:fs";
import path from "node:path";
import { toJson } from "../../base/json.ts";
import { escapeControls } from "../../base/plain-text.ts";
import { hasCode } from "../../lib/files.ts";
import { messageOf } from "../../model/failure.ts";
import { asOwnerOf } from "../../os/owner.ts";
import { type Certificate, dayOf, parseCertificateFile, toPem } from "../../os/pki/certificate.ts";
import { certificateWords, overviewOf } from "../../os/pki/overview.ts";
import { createPki, type GivenFile, type OpenPki } from "../../os/pki/pki.ts";
import { personLog } from "../device/device.ts";
import { readIn, writeTo } from "../files.ts";
import { type CommandIo, complain, EXIT, type ExitCode, UsageError } from "../io.ts";
import { settingsOrUsage } from "../service/run.ts";
import { type CertificatePlace, certificatePlace, personFolder, withoutSudo } from "./certificates.ts";
import { certificateLines, overviewLines, TELL_SERVER } from "./pki-words.ts";

export interface PkiCommandOptions {
  readonly config?: string;
  readonly json?: boolean;
}

const MAX_FILE_BYTES = 64 * 1024;
/** Fewer hex digits of a thumbprint than these are taken for the name of a file. */
const MIN_DIGITS = 4;
/** SHA-1. */
const MAX_DIGITS = 40;

/** `collector pki list`: who the collector is, and whom it trusts. Throws UsageError. */
export function pkiList(options: PkiCommandOptions, io: CommandIo): Promise<ExitCode> {
  return withPki(options, io, async ({ pki, place, print }) => {
    const overview = await overviewOf(place.dir, pki);
    print(overview, overviewLines(overview));
  });
}

/** `collector pki trust`: by a thumbprint's beginning among the rejected ones, or by a file. Throws UsageError. */
export function pkiTrust(
  reference: string,
  options: PkiCommandOptions & { readonly issuer?: boolean; readonly althoughExpiredUntil?: string },
  io: CommandIo,
): Promise<ExitCode> {
  const given = fileOf(reference);
  const { althoughExpiredUntil: date } = options;
  const until = date === undefined ? undefined : endOfDay(date, Date.now());
  if (date !== undefined && options.issuer) throw new UsageError("--although-expired-until is for a certificate that is trusted itself");
  return withPki(options, io, async ({ pki, place, print }) => {
    const refused = pki.trust.rejected.list().refused.map(({ certificate }) => certificate);
    const known = [...refused, ...pki.trust.trusted().kept.map(({ certificate }) => certificate)];
    const certificate = given ? certificateIn(given) : byThumbprint(reference, known, place);
    if (until !== undefined) checkForgivable(certificate, until);
    const isNew = options.issuer ? pki.addIssuer(certificate) : pki.trust.trust(certificate, until);
    const consequence = options.issuer
      ? "It links certificates to trusted authorities; it is not trusted itself."
      : certificate.isAuthority
        ? "This is an authority: every certificate that it signs is trusted as well."
        : "The next connection accepts it; no restart is needed.";
    const words = options.issuer ? "Kept as an issuer" : isNew ? "Trusted" : "Trusted already";
    print({ ...certificateWords(certificate, until), trusted: !options.issuer, changed: isNew, although_expired_until: date ?? null }, [
      `${words}:`,
      ...certificateLines(certificateWords(certificate, until)),
      consequence,
      ...(date === undefined
        ? []
        : [`It stays trusted to the end of ${date} (UTC) although it expires before; everything else is checked as ever.`]),
    ]);
  });
}

/** `collector pki reject`: trusts it no more, or refuses one that waits. Throws UsageError. */
export function pkiReject(reference: string, options: PkiCommandOptions, io: CommandIo): Promise<ExitCode> {
  const given = fileOf(reference);
  return withPki(options, io, async ({ pki, place, print }) => {
    const known = [
      ...pki.trust.trusted().kept.map(({ certificate }) => certificate),
      ...pki.trust.rejected.list().refused.map(({ certificate }) => certificate),
    ];
    const certificate = given ? certificateIn(given) : byThumbprint(reference, known, place);
    const changed = pki.trust.reject(certificate);
    print({ ...certificateWords(certificate), trusted: false, changed }, [
      `${changed ? "Rejected" : "Rejected already"}:`,
      ...certificateLines(certificateWords(certificate)),
      "New connections refuse it; open connections stay until they are closed.",
    ]);
  });
}

/** `collector pki renew`: another certificate of our own at once. Throws UsageError. */
export function pkiRenew(options: PkiCommandOptions & { readonly newKey?: boolean }, io: CommandIo): Promise<ExitCode> {
  return withPki(options, io, async ({ pki, print }) => {
    const { current, certificateFile } = await pki.identity.renew(options.newKey ?? false);
    const words = certificateWords(current);
    print({ ...words, file: certificateFile, new_key: options.newKey ?? false }, [
      "The collector's certificate is now:",
      ...certificateLines(words),
      ...TELL_SERVER,
    ]);
  });
}

/** `collector pki export`: our own certificate, without its key, for the trust list of a server. Throws UsageError. */
export function pkiExport(
  file: string | undefined,
  options: PkiCommandOptions & { readonly next?: boolean },
  io: CommandIo,
): Promise<ExitCode> {
  let certificate: Certificate | undefined;
  return withPki(
    options,
    io,
    async ({ pki: { identity } }) => {
      if (!identity.look()) await identity.get();
      const state = identity.look();
      certificate = options.next ? state?.next : state?.current;
      if (!certificate) {
        complain(io, "there is no next certificate yet: the collector makes it 90 days before the current one expires");
        return EXIT.usage;
      }
      return EXIT.good;
    },
    ({ print }) => {
      if (!certificate) return;
      const words = certificateWords(certificate);
      if (file === undefined) {
        if (options.json) io.stdout.write(`${toJson({ ...words, pem: toPem(certificate.der) })}\n`);
        else io.stdout.write(toPem(certificate.der));
        return;
      }
      writeTo(file, /\.pem$/i.test(file) ? toPem(certificate.der) : certificate.der);
      print({ ...words, file: path.resolve(file) }, [`Written to ${file}:`, ...certificateLines(words), ...TELL_SERVER]);
    },
  );
}

/** `collector pki user`: keeps the certificate and key with which data sources log in. Throws UsageError. */
export function pkiUser(
  name: string,
  certificateFile: string,
  keyFile: string,
  options: PkiCommandOptions,
  io: CommandIo,
): Promise<ExitCode> {
  const [certificate, key] = [readGiven(certificateFile), readGiven(keyFile)];
  return withPki(options, io, async ({ pki, print }) => {
    let added: Certificate;
    try {
      added = pki.addUser(name, certificate, key);
    } catch (error) {
      if (error instanceof Error && "code" in error && "syscall" in error) throw error;
      throw new UsageError(messageOf(error));
    }
    const words = certificateWords(added);
    print({ ...words, name }, [
      `Kept as user certificate ${name}:`,
      ...certificateLines(words),
      ...(name === "user" ? [] : [`To log in with it, set user_certificate: ${name} for the data source in the settings.`]),
    ]);
  });
}

/** Opens the PKI, as the owner of its folder. */
export interface Opened {
  readonly pki: OpenPki;
  readonly place: CertificatePlace;
  /** One JSON object, or lines for people. */
  print(value: object, lines: readonly string[]): void;
}

/** `work` runs as the owner of the state folder, `after` as who typed the command, and only if `work` went well. */
export async function withPki(
  options: PkiCommandOptions,
  io: CommandIo,
  work: (opened: Opened) => Promise<ExitCode | undefined>,
  after?: (opened: Opened) => void,
): Promise<ExitCode> {
  try {
    const place = await placeOf(options, io);
    const pki = createPki({ dir: place.dir, installation: place.installation, log: personLog(io) });
    const opened: Opened = {
      pki,
      place,
      print(value, lines) {
        const words = place.isService
          ? lines
          : [...lines.map(withoutSudo), "", `These certificates are your own (${place.dir}). The service's: sudo collector pki …`];
        io.stdout.write(options.json ? `${toJson(value)}\n` : `${words.map(escapeControls).join("\n")}\n`);
      },
    };
    const code = (await asOwnerOf(place.stateDir, () => work(opened))) ?? EXIT.good;
    if (code === EXIT.good) after?.(opened);
    return code;
  } catch (error) {
    if (error instanceof UsageError) throw error;
    const denied = hasCode(error, "EACCES") || hasCode(error, "EPERM") || (error instanceof Error && hasCode(error.cause, "EACCES"));
    complain(io, `${messageOf(error)}${denied ? "\nThe certificates belong to the service: type the command with sudo" : ""}`);
    return EXIT.ownFailure;
  }
}

/**
 * Root means those of the service, and where there is no service what `read` and `browse` have kept for root; anybody else those that these
 * verbs take for them. Throws UsageError.
 */
async function placeOf({ config }: PkiCommandOptions, io: CommandIo): Promise<CertificatePlace> {
  const { settings } = settingsOrUsage(config);
  if (process.geteuid?.() !== 0) return certificatePlace(settings, io);
  const stateDir = path.resolve(settings.state_dir);
  if (!statSync(stateDir, { throwIfNoEntry: false })?.isDirectory()) {
    if (existsSync(path.join(personFolder(io), "pki"))) return certificatePlace(settings, io);
    throw new UsageError(`the state folder ${stateDir} is not there yet: start the collector once, or name its settings with --config`);
  }
  return asOwnerOf(stateDir, async () => certificatePlace(settings, io));
}

/** The file that is meant; undefined: the beginning of a thumbprint is. Read as who typed the command. Throws UsageError. */
function fileOf(reference: string): GivenFile | undefined {
  if (digitsOf(reference) !== undefined) return undefined;
  if (!existsSync(reference) && /^[0-9a-f:\s]+$/i.test(reference))
    throw new UsageError(
      `${reference} is neither a file nor the beginning of a thumbprint, which has ${MIN_DIGITS} to ${MAX_DIGITS} hex digits`,
    );
  return readGiven(reference);
}

const DAY_MS = 24 * 3_600_000;
const MAX_FORGIVEN_DAYS = 366;

/** Epoch ms of the end of this day. Throws UsageError. */
function endOfDay(date: string, nowMs: number): number {
  const startMs = /^\d{4}-\d\d-\d\d$/.test(date) ? Date.parse(`${date}T00:00:00Z`) : Number.NaN;
  if (Number.isNaN(startMs) || new Date(startMs).toISOString().slice(0, 10) !== date)
    throw new UsageError(`--although-expired-until takes a day such as 2027-01-31, not ${JSON.stringify(date)}`);
  const endMs = startMs + DAY_MS;
  if (endMs <= nowMs) throw new UsageError(`--although-expired-until: ${date} is over`);
  if (endMs - nowMs > MAX_FORGIVEN_DAYS * DAY_MS) throw new UsageError(`--although-expired-until: ${date} is more than a year from now`);
  return endMs;
}

/** Throws UsageError. */
function checkForgivable({ isAuthority, subject, notAfter }: Certificate, until: number): void {
  if (isAuthority) throw new UsageError(`--although-expired-until is for one server or client; ${subject} is an authority`);
  if (notAfter >= until)
    throw new UsageError(`this certificate is valid to ${dayOf(notAfter)}: --although-expired-until takes a later day, or is left out`);
}

export const readGiven = (file: string, maxBytes = MAX_FILE_BYTES): GivenFile => ({ file, bytes: readIn(file, maxBytes) });

/** Upper-case hex without the colons and blanks with which other tools show it; undefined: it is not a thumbprint. */
function digitsOf(reference: string): string | undefined {
  const digits = reference.replaceAll(/[:\s]/g, "").toUpperCase();
  return /^[0-9A-F]+$/.test(digits) && digits.length >= MIN_DIGITS && digits.length <= MAX_DIGITS ? digits : undefined;
}

function byThumbprint(reference: string, known: readonly Certificate[], { isService }: CertificatePlace): Certificate {
  const digits = digitsOf(reference) ?? "";
  const found = [...new Map(known.map((certificate) => [certificate.thumbprint, certificate])).values()].filter(({ thumbprint }) =>
    thumbprint.startsWith(digits),
  );
  const [first] = found;
  if (!first)
    throw new UsageError(
      `no known certificate has a thumbprint that begins with ${digits}; ${isService ? "sudo collector pki list shows the known ones, and what was met without sudo is trusted without it: collector pki trust" : "sudo collector pki list shows those of the service"}`,
    );
  if (found.length > 1)
    throw new UsageError(
      `${found.length} thumbprints begin with ${digits}; give more of it:\n${found.map(({ thumbprint, subject }) => `${thumbprint}  ${subject}`).join("\n")}`,
    );
  return first;
}

function certificateIn({ file, bytes }: GivenFile): Certificate {
  let found: readonly Certificate[];
  try {
    found = parseCertificateFile(bytes);
  } catch (error) {
    throw new UsageError(`${file}: ${messageOf(error)}; give a certificate in DER or PEM`);
  }
  const [first] = found;
  if (!first || found.length > 1)
    throw new UsageError(`${file} holds ${found.length} certificates; give the right one in a file of its own`);
  return first;
}
