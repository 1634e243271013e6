import type { DataType } from "../../src/model/value.ts";
import { addressInvalid } from "../lib/text.ts";

/** An item by its name, as the server behind the gateway has it. */
export interface GatewayAddress {
  readonly item: string;
  /** What the server's items were when it was looked up; absent: it was not. */
  readonly epoch?: string;
  /** Its type is the server's: readings say it. */
  readonly isAuto?: true;
}

const MAX_CHARACTERS = 1024;
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is refused.
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/;
const LONE_SURROGATE = /\p{Surrogate}/u;
const FORM = "expected the name of an item as its server writes it, for example Press.Force or [Plc1]N7:0, without control characters";
const AUTO: DataType = { scalar: "auto" };

/** Names of OPC DA and PVI have no common form: what servers cannot have is refused, the rest is theirs to know. Pure. Throws `address_invalid`. */
export function parseAddress(text: string, type: DataType | undefined): { readonly address: GatewayAddress; readonly type: DataType } {
  const item = text.trim();
  if (item === "" || CONTROL.test(text) || LONE_SURROGATE.test(item)) throw addressInvalid(text, FORM);
  if (item.length > MAX_CHARACTERS) throw addressInvalid(text, `it has ${item.length} characters, at most ${MAX_CHARACTERS} can be`);
  const { maxBytes: _, ...plain } = type ?? AUTO;
  return { address: { item }, type: plain };
}
