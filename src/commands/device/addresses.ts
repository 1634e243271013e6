import { typeOf } from "../../../drivers/driver.ts";
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
  const unchecked = (why: string): AddressCheck => ({ problemOf: () => undefined, note: `the addresses are not checked: ${why}` });
  const entry = entryOf(source.type);
  if (!entry) return unchecked(`this collector has no driver for ${source.type}`);
  const { default: driver } = await entry.driver();
  const local = boundOptions(source.type, optionsOf(settings.sources, settings.state_dir, "source", source), settings, readProfile);
  if (isBoundType(source.type) && local["profile"] === undefined) return unchecked(unboundWords(source.type));
  const own = Object.entries(local).filter(([key]) => !SHARED.has(key));
  const options = driver.settings.safeParse(Object.fromEntries(own));
  if (!options.success) return unchecked(`sources.${source.name} in the settings: ${issueWords(options.error).join("; ")}`);
  return {
    problemOf({ address, type }) {
      try {
        const wanted = type === null ? undefined : typeOf(driver, type);
        if (type !== null && !wanted) return `type: ${JSON.stringify(type)} is not a type of ${driver.title}: expected ${TYPE_EXAMPLES}`;
        driver.parseAddress(address, wanted, options.data);
        return undefined;
      } catch (error) {
        return `address: ${messageOf(error)}`;
      }
    },
    note: undefined,
  };
}
