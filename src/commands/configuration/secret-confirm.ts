import * as z from "zod";
import { toJson } from "../../base/json.ts";
import { plain } from "../../base/plain-text.ts";
import { placeWords, secretPlaceSchema } from "../../model/secret-place.ts";
import { localSocketPath } from "../../service/local-socket.ts";
import { answer } from "../answer.ts";
import { type CommandIo, complain, EXIT, type ExitCode, UsageError } from "../io.ts";
import { requireYes } from "../prompt.ts";
import { askService, ServiceError, tellService } from "../service/local-client.ts";
import { settingsOrUsage } from "../service/run.ts";

export interface SecretConfirmOptions {
  readonly config?: string;
  readonly yes?: boolean;
  readonly json?: boolean;
}

const withheldSchema = z.object({
  withheld: z.array(
    z.object({
      uuid: z.string(),
      name: z.string().nullable(),
      was: secretPlaceSchema,
      now: secretPlaceSchema,
      changed: z.array(z.string()),
    }),
  ),
});
type Withheld = z.output<typeof withheldSchema>["withheld"][number];

/**
 * `collector secret confirm`: the password of this machine goes where the configuration has the entry now. What the person sees is what is
 * confirmed: another change meanwhile is refused. Throws UsageError.
 */
export async function secretConfirm(key: string, options: SecretConfirmOptions, io: CommandIo): Promise<ExitCode> {
  const socket = localSocketPath(settingsOrUsage(options.config).settings.state_dir);
  try {
    const { withheld } = withheldSchema.parse(await askService(socket, "/secrets/withheld", io.signal));
    const entry = entryOf(key, withheld);
    const { uuid, name, was, now, changed } = entry;
    const [before, after] = [placeWords(was), placeWords(now)];
    if (!options.json)
      io.stderr.write(plain`The password of ${name ?? uuid} is for   ${before}\nThe configuration has it now at   ${after}\n`);
    await requireYes({ text: "Use the password there?", done: "confirmed", verb: "confirm" }, options, io);
    await tellService(socket, "/secret/confirm", { uuid, place: now }, io.signal);
    answer(
      io,
      options,
      { action: "confirmed", uuid, name, was, now, changed },
      plain`The password of ${name ?? uuid} goes to ${after} now.\n`,
    );
    return EXIT.good;
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    complain(io, error.message);
    return EXIT.ownFailure;
  }
}

/** By uuid or name. Throws UsageError: none or several. */
function entryOf(key: string, withheld: readonly Withheld[]): Withheld {
  const fitting = withheld.filter(({ uuid, name }) => uuid === key.toLowerCase() || name === key);
  const [entry, ...more] = fitting;
  if (entry && more.length === 0) return entry;
  if (entry) throw new UsageError(`${key} is the name of several; name the uuid:\n${fitting.map(({ uuid }) => uuid).join("\n")}`);
  const names = withheld.map(({ uuid, name }) => name ?? uuid);
  const list = names.length === 0 ? "no password is withheld" : `passwords are withheld from ${toJson(names.slice(0, 20))}`;
  throw new UsageError(`the password of ${key} is not withheld; ${list}`);
}
