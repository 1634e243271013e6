import type { Discovered, DriverContext } from "../../../drivers/driver.ts";
import { formatDuration } from "../../base/duration.ts";
import { toJson } from "../../base/json.ts";
import { toReasonError } from "../../model/failure.ts";
import { ReasonError } from "../../model/reason.ts";
import { type CommandIo, UsageError } from "../io.ts";
import { progressOn } from "./browse-progress.ts";
import type { Target } from "./browse-target.ts";
import { browseObject } from "./browse-words.ts";
import { untilAborted } from "./until-aborted.ts";

/** What a table or a CSV is made of is kept: so much text, of half a million variables and more. */
const MAX_CHARACTERS = 64 * 1024 * 1024;
/** What an entry takes beside its texts, in characters. */
const ENTRY_CHARACTERS = 64;

/** What is looked for, and for how long. */
export interface How {
  readonly timeoutMs: number;
  readonly depth: number;
  readonly isMeant: (found: Discovered) => boolean;
  /** Takes what a profile of the driver's has, as it has it. Absent: everything is taken. */
  readonly ofProfile?: (found: Discovered) => Discovered | undefined;
}

/** What was found until the end, or until it failed. */
export interface Outcome {
  /** Empty with --json, which prints each one as it is found. */
  readonly found: readonly Discovered[];
  readonly count: number;
  /** Of the count, those that can be read. */
  readonly readable: number;
  /** Everything that was seen, filtered or not. */
  readonly seen: number;
  /** The device has more than is kept. */
  readonly isFull: boolean;
  readonly failure: ReasonError | undefined;
}

/**
 * Asks a device what it has, until it has said all of it, the signal aborts or as much was found as is kept, whatever its driver does. Throws
 * UsageError where it cannot say.
 */
export async function discoverAll(
  target: Pick<Target, "driver" | "details" | "settings" | "secrets">,
  how: How,
  { json }: { readonly json?: boolean },
  given: DriverContext,
  io: CommandIo,
): Promise<Outcome> {
  const { driver, details, settings, secrets } = target;
  const found: Discovered[] = [];
  const progress = progressOn(io.stderr);
  const ctx: DriverContext = { ...given, progress: progress.looked, ...(how.ofProfile && { browsePaths: true }) };
  let [seen, count, readable, kept] = [0, 0, 0, 0];
  let isFull = false;
  const late = () =>
    new ReasonError("TIMEOUT", `not everything was found within ${formatDuration(how.timeoutMs)}; give more with --timeout`);
  let session: Awaited<ReturnType<typeof driver.connect>> | undefined;
  try {
    session = await driver.connect({ details, settings, secrets }, ctx);
    if (!session.discover)
      throw new UsageError(`devices of type ${driver.type} cannot say what they have; ${driver.title} needs a list of the addresses`);
    for await (const node of untilAborted(session.discover(ctx), ctx.signal, late)) {
      // The nearer ones come first: from here on all are too deep.
      if ((node.path?.length ?? 0) >= how.depth) break;
      seen++;
      const one = how.ofProfile ? how.ofProfile(node) : node;
      if (one && how.isMeant(one)) {
        kept += json ? 0 : charactersOf(one);
        isFull = kept > MAX_CHARACTERS;
        if (isFull) break;
        count++;
        if (one.type !== undefined) readable++;
        if (json) {
          io.stdout.write(`${toJson(browseObject(one))}\n`);
          // The device is asked for more as the reader takes it.
          await io.stdout.room(ctx.signal);
        } else found.push(one);
      }
      progress.tell(seen, node.path?.length ?? 0);
    }
    return { found, count, readable, seen, isFull, failure: undefined };
  } catch (error) {
    if (error instanceof UsageError) throw error;
    return { found, count, readable, seen, isFull, failure: toReasonError(error) };
  } finally {
    progress.end();
    await session?.close();
  }
}

/** What keeping it takes. Pure. */
const charactersOf = ({ address, name, path = [], unit = "", comment = "" }: Discovered): number =>
  path.reduce((sum, part) => sum + part.length, ENTRY_CHARACTERS + address.length + name.length + unit.length + comment.length);
