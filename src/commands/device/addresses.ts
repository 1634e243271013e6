import { type AnyDriver, typeOf } from "../../../drivers/driver.ts";
import { ForeignAddress, splitTyped } from "../../../drivers/lib/spellings.ts";
import { boundOptions, readProfile } from "../../configuration/bindings.ts";
import { optionsOf } from "../../configuration/kept-options.ts";
import { unboundWords } from "../../model/binding.ts";
import { messageOf } from "../../model/failure.ts";
import { isBoundType } from "../../model/profile-details.ts";
import { type Settings, sourceSettingsSchema } from "../../model/settings.ts";
import { TYPE_EXAMPLES } from "../../model/value.ts";
import { issueWords } from "../configuration/fields.ts";
import { entryOf } from "./device.ts";

/** An address with the type that is wanted there, as a variable has them. */
interface Addressed {
  readonly address: string;
  readonly type: string | null;
}

/** True: addresses of one data source can be read by its driver. */
export interface AddressCheck {
  /** What is wrong with an address, with the address and what would be right; undefined: nothing, or nobody can tell. */
  readonly problemOf: (variable: Addressed) => string | undefined;
  /**
   * Our words for an address that this program wrote, where they are its one meaning; else what is wrong with it. `countsFrom`: how the
   * program counts, where a setting of it decides. Where nobody can tell, the address stays as it is.
   */
  readonly readAddress: (variable: Addressed, program: string, countsFrom: 0 | 1 | undefined) => Addressed | string;
  /** Why nobody can tell; undefined: they are checked. */
  readonly note: string | undefined;
}

const SHARED = new Set(Object.keys(sourceSettingsSchema.shape));

/**
 * Checks addresses with the driver of a data source, under what the settings of this machine say of that source. Its status would tell the same
 * later, one variable at a time.
 */
export async function addressCheck(
  source: { readonly uuid: string; readonly name: string; readonly type: string },
  settings: Pick<Settings, "bindings" | "sources" | "state_dir">,
): Promise<AddressCheck> {
  const unchecked = (why: string): AddressCheck => ({
    problemOf: () => undefined,
    readAddress: (variable) => variable,
    note: `the addresses are not checked: ${why}`,
  });
  const entry = entryOf(source.type);
  if (!entry) return unchecked(`this collector has no driver for ${source.type}`);
  const { default: driver } = await entry.driver();
  const local = boundOptions(source.type, optionsOf(settings.sources, settings.state_dir, "source", source), settings, readProfile);
  if (isBoundType(source.type) && local["profile"] === undefined) return unchecked(unboundWords(source.type));
  const own = Object.entries(local).filter(([key]) => !SHARED.has(key));
  const options = driver.settings.safeParse(Object.fromEntries(own));
  if (!options.success) return unchecked(`sources.${source.name} in the settings: ${issueWords(options.error).join("; ")}`);
  const check = (variable: Addressed): unknown => errorOf(driver, variable, options.data);
  const problemOf = (variable: Addressed): string | undefined => {
    const error = check(variable);
    return error === undefined ? undefined : wordsOf(error);
  };
  return {
    problemOf,
    readAddress(variable, program, countsFrom) {
      const error = check(variable);
      if (error === undefined) {
        const other = driver.otherMeaning?.(variable.address);
        return other === undefined ? variable : `address: ${other}`;
      }
      const ours = error instanceof ForeignAddress ? meaningOf(error, program, countsFrom) : undefined;
      if (ours === undefined) return isCounted(error, program) ? `${wordsOf(error)}; choose with --count-from` : wordsOf(error);
      const { address, type } = splitTyped(ours);
      const read = { address, type: variable.type ?? type ?? null };
      return problemOf(read) ?? read;
    },
    note: undefined,
  };
}

const wordsOf = (error: unknown): string => (typeof error === "string" ? error : `address: ${messageOf(error)}`);

/** Gives the sentence, or the error of the parser; undefined: the address can be read. */
function errorOf(driver: AnyDriver, { address, type }: Addressed, settings: unknown): unknown {
  const wanted = type === null ? undefined : typeOf(driver, type);
  if (type !== null && !wanted) return `type: ${JSON.stringify(type)} is not a type of ${driver.title}: expected ${TYPE_EXAMPLES}`;
  try {
    driver.parseAddress(address, wanted, settings);
    return undefined;
  } catch (error) {
    return error;
  }
}

/** True: the meanings differ in where the program begins to count. */
const isCounted = (error: unknown, program: string): boolean =>
  error instanceof ForeignAddress &&
  error.answers.some(
    ({ tool, answer }) => tool.includes(program) && "either" in answer && answer.either.some((one) => one.countsFrom !== undefined),
  );

/** The one meaning of an address where this program wrote it; undefined: it has none, or several. */
function meaningOf({ answers }: ForeignAddress, program: string, countsFrom: 0 | 1 | undefined): string | undefined {
  const answer = answers.find(({ tool }) => tool.includes(program))?.answer;
  if (!answer || "none" in answer) return undefined;
  if ("write" in answer) return answer.write;
  const [one, ...others] = answer.either.filter(({ countsFrom: from }) => from !== undefined && from === countsFrom);
  return others.length === 0 ? one?.write : undefined;
}
