import { randomUUID } from "node:crypto";
import { accessSync, constants, existsSync, mkdirSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";
import { lastGoodFile } from "../../api/embedded.ts";
import { collectorIn } from "../../api/last-good.ts";
import { installationUuid } from "../../configuration/identity.ts";
import type { Log } from "../../model/context.ts";
import type { Pki, PkiPlace, Verdict } from "../../model/pki.ts";
import type { Settings } from "../../model/settings.ts";
import { asOwnerOf } from "../../os/owner.ts";
import { createPki } from "../../os/pki/pki.ts";
import type { CommandIo } from "../io.ts";

/** Whose certificates a verb on the command line works with. */
export interface CertificatePlace extends PkiPlace {
  /** The folder that the PKI folder is in; whoever owns it owns the certificates. */
  readonly stateDir: string;
  /** False: the service's own cannot be written by this person, and these are the person's. */
  readonly isService: boolean;
}

/**
 * The service's PKI folder where this person may write to it, else one of the person's own, below XDG_STATE_HOME or ~/.local/state (XDG Base
 * Directory Specification). Makes the latter. Rejects with the file system's error.
 */
export async function certificatePlace(settings: Pick<Settings, "state_dir" | "collector">, io: CommandIo): Promise<CertificatePlace> {
  const { stateDir, isService } = writableStateDir(settings, io, "pki");
  if (isService) return asOwnerOf(stateDir, async () => placeIn(stateDir, settings.collector, true));
  return placeIn(stateDir, undefined, false);
}

/**
 * The service's state folder where this person may write to it, and to `folder` in it; else one of the person's own, below XDG_STATE_HOME or
 * ~/.local/state (XDG Base Directory Specification), which is made. Throws the file system's error.
 */
export function writableStateDir(
  { state_dir }: Pick<Settings, "state_dir">,
  io: CommandIo,
  folder?: string,
): { readonly stateDir: string; readonly isService: boolean } {
  const service = path.resolve(state_dir);
  if (isWritable(service) && (folder === undefined || isWritable(path.join(service, folder), service)))
    return { stateDir: service, isService: true };
  const own = personFolder(io);
  mkdirSync(own, { recursive: true, mode: 0o700 });
  return { stateDir: own, isService: false };
}

/** The place where a person's own state is. */
export function personFolder(io: CommandIo): string {
  const state = io.env["XDG_STATE_HOME"];
  return path.join(state !== undefined && path.isAbsolute(state) ? state : path.join(homeOf(io), ".local", "state"), "collector");
}

const homeOf = (io: CommandIo): string => io.env["HOME"] || homedir();

const placeIn = (stateDir: string, collector: string | undefined, isService: boolean): CertificatePlace => ({
  dir: path.join(stateDir, "pki"),
  installation: collector ?? installationUuid(path.join(stateDir, "collector-uuid"), randomUUID, () => collectorIn(lastGoodFile(stateDir))),
  stateDir,
  isService,
});

/** `otherwise` is asked where the folder does not exist yet. */
function isWritable(folder: string, otherwise?: string): boolean {
  const asked = otherwise !== undefined && !existsSync(folder) ? otherwise : folder;
  try {
    accessSync(asked, constants.W_OK | constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** The PKI for a driver that a verb runs. What it writes belongs to the owner of the folder, root or not. */
export function certificatesOf(place: CertificatePlace, log: Log): Pki {
  const pki = createPki({ dir: place.dir, installation: place.installation, log });
  // The process has one effective user: one at a time.
  let last: Promise<unknown> = Promise.resolve();
  const asOwner = <T>(work: () => Promise<T>): Promise<T> => {
    const next = last.then(() => asOwnerOf(place.stateDir, work));
    last = next.catch(() => {});
    return next;
  };
  return {
    own: () => asOwner(() => pki.own()),
    judge: async (chain, options) => forPerson(await asOwner(() => pki.judge(chain, options)), place),
    trustedFor: (server) => asOwner(() => pki.trustedFor(server)),
    user: (name) => asOwner(() => pki.user(name)),
  };
}

const forPerson = (verdict: Verdict, { isService }: CertificatePlace): Verdict =>
  verdict.trusted || isService ? verdict : { ...verdict, words: withoutSudo(verdict.words) };

/** Words about a person's own certificates, which need no other user's rights. */
export const withoutSudo = (words: string): string => words.replaceAll("sudo collector pki", "collector pki");
