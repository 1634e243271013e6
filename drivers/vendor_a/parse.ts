import type { DataType } from "../../src/model/value.ts";
import { parseOrAnswer } from "../lib/spellings.ts";
import { parseTag, parseType } from "./address.ts";
import { isFileText, parseFileAddress } from "./pccc/address.ts";
import type { CipSettings } from "./settings.ts";
import { FORMS } from "./spellings.ts";
import type { AnyAddress } from "./variants.ts";

type Wanted = Pick<CipSettings, "encoding" | "family">;
type Parsed = { readonly address: AnyAddress; readonly type: DataType };

/**
 * The address of a tag, or of an element of a data file (`N7:0`), which no tag is written like. Pure. Throws FaultError: `address_invalid` (the
 * text, with our words for an address of another tool), `type_mismatch`.
 */
export const parseAddress = (text: string, type: DataType | undefined, settings: Wanted): Parsed =>
  parseOrAnswer(text, type, FORMS, (own, wanted) => parseOwn(own, wanted, settings), parseType);

function parseOwn(text: string, type: DataType | undefined, settings: Wanted): Parsed {
  if (!isFileText(text)) return parseTag(text, type, settings);
  const { encoding, family } = settings;
  return parseFileAddress(text, type, encoding, family === "auto" ? undefined : family);
}
