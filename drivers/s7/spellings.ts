import { type Answer, type Form, type Meaning, typed } from "../lib/spellings.ts";
import { ADDRESS_WORDS, type Kind } from "../lib/step7-types.ts";

const AREA_OF_LETTERS: Readonly<Record<string, string>> = {
  I: "I",
  E: "I",
  PE: "I",
  Q: "Q",
  A: "Q",
  O: "Q",
  PA: "Q",
  M: "M",
  MK: "M",
  F: "M",
};
/** Widths of STEP 7, which address one or more bytes and no type. */
const WIDTH_OF_KIND: Readonly<Partial<Record<Kind, string>>> = { BYTE: "B", WORD: "W", DWORD: "D" };

const PERIPHERAL =
  "peripheral inputs and outputs are not read, because reading can change them; read the process image, for example IW64 or QW4";
const LITTLE_ENDIAN = "numbers with the low byte first are not read; the controller keeps the high byte first. Read the bytes, for example";
const LOCAL = "local data exist only while their block runs, and are not read; copy the value to a data block or to flags";
const NO_BLOCK = "it names no data block; write the block before it, for example";
const SYMBOL =
  "this driver reads places, not names; write block and offset, for example DB1.DBD4, or read the controller by its symbols with s7plus";

const kindOf = (word: string | undefined): Kind | undefined => {
  const name = word?.toUpperCase() ?? "";
  if (name === "LI") return "LINT";
  return Object.hasOwn(ADDRESS_WORDS, name) ? ADDRESS_WORDS[name] : undefined;
};
const areaOf = (letters: string | undefined): string => AREA_OF_LETTERS[letters?.toUpperCase() ?? ""] ?? "M";

/** `3,2,2` and `3][2` as the number of all elements. */
const elementsIn = (dimensions: string | undefined): number | undefined =>
  dimensions === undefined ? undefined : dimensions.split(/[^\d]+/).reduce((all, one) => all * Number(one), 1);

/** A width and one dimension at most: an address of ours, or a mistake in one. */
const isOwn = (word: string, dimensions: string | undefined): boolean => /^[XBWD]$/i.test(word) && !/\D/.test(dimensions ?? "");

interface Parts {
  /** `DB1`, `DI5`, `M`, `I`, `Q`. */
  readonly area: string;
  readonly word: string | undefined;
  readonly byte: string | undefined;
  /** Number behind the point: a bit, or the characters of a text. */
  readonly extra?: string | undefined;
  readonly dimensions?: string | undefined;
}

/** The place with its type in the address. */
function inType({ area, word, byte, extra, dimensions }: Parts): Answer | undefined {
  const kind = kindOf(word);
  const at = Number(byte);
  const elements = elementsIn(dimensions);
  const count = elements === undefined ? "" : `[${elements}]`;
  const isBlock = area.startsWith("D");
  if (kind === undefined) return undefined;
  if (kind === "BOOL")
    return extra === undefined ? undefined : { write: `${area}${isBlock ? `.${area.slice(0, 2)}X` : ""}${at}.${Number(extra)}${count}` };
  if (kind === "STRING" || kind === "WSTRING") {
    const chars = extra ?? dimensions;
    return { write: `${area},${kind}${at}${chars === undefined ? "" : `.${Number(chars)}`}` };
  }
  if (extra !== undefined) return undefined;
  const several = dimensions !== undefined && /\D/.test(dimensions) ? { because: "an array has one dimension here, row by row" } : {};
  const width = WIDTH_OF_KIND[kind];
  if (width !== undefined) return { write: `${area}${isBlock ? `.${area.slice(0, 2)}` : ""}${width}${at}${count}`, ...several };
  return { write: `${area},${kind}${at}${count}`, ...several };
}

/** The place with its type behind the address, as plc4x and pointers have it. */
function inBytes(area: string, byte: string | undefined, type: string, count: string | undefined): string {
  const elements = count === undefined || Number(count) === 1 ? "" : `[${Number(count)}]`;
  const place = area.startsWith("D") ? `${area}.${area.slice(0, 2)}B${Number(byte)}` : `${area}B${Number(byte)}`;
  return kindOf(type) === "BYTE" ? `${place}${elements}` : typed(`${place}${elements}`, type);
}

/** First byte of what a LOGO! 0BA8 keeps in its V memory: words, and bits. */
const LOGO_WORDS: Readonly<Record<string, number>> = { AI: 1032, AQ: 1072, AM: 1118, NAI: 1262, NAQ: 1406 };
const LOGO_BITS: Readonly<Record<string, number>> = { NI: 1246, NQ: 1390 };

const WORDS = "[A-Za-z_]{1,14}?|S5TIME";
const DIMENSIONS = String.raw`(?:\[(?<dimensions>\d{1,5}(?:(?:,|\]\[)\d{1,5}){0,2})\])?`;

/** Width and type of what has the suffix BCD; whole numbers have a sign. */
const BCD_OF: Readonly<Record<string, readonly [width: string, type: string]>> = {
  W: ["W", "BCD"],
  WORD: ["W", "BCD"],
  INT: ["W", "BCD16"],
  D: ["D", "LBCD"],
  DWORD: ["D", "LBCD"],
  DINT: ["D", "BCD32"],
};

/** The more particular first. */
export const FORMS: readonly Form[] = [
  {
    tool: "plc4x",
    pattern:
      /^%?(?<area>DB\d{1,5}|DBI\d{1,5})(?:\.DB[XBWD]|:)(?<byte>\d{1,7})(?:\.(?<bit>\d))?:(?<type>[A-Z_0-9]{3,13})(?:\((?<chars>\d{1,5})\))?(?:\[(?<count>\d{1,5})\])?$/i,
    answer({ area = "", byte, bit, type = "", chars, count }) {
      const block = area.toUpperCase().replace("DBI", "DI");
      if (type.toUpperCase() === "BOOL")
        return bit === undefined
          ? undefined
          : { write: `${block}.${block.slice(0, 2)}X${Number(byte)}.${bit}${count === undefined ? "" : `[${count}]`}` };
      return { write: inBytes(block, byte, chars === undefined ? type.toUpperCase() : `${type.toUpperCase()}[${chars}]`, count) };
    },
  },
  {
    tool: "plc4x",
    pattern: /^%?(?<area>[IQM])[XBWD]?(?<byte>\d{1,7})(?:\.(?<bit>\d))?:(?<type>[A-Z_0-9]{3,13})(?:\[(?<count>\d{1,5})\])?$/i,
    answer({ area = "", byte, bit, type = "", count }) {
      if (type.toUpperCase() === "BOOL")
        return bit === undefined
          ? undefined
          : { write: `${area.toUpperCase()}${Number(byte)}.${bit}${count === undefined ? "" : `[${count}]`}` };
      return { write: inBytes(area.toUpperCase(), byte, type.toUpperCase(), count) };
    },
  },
  { tool: "TIA Portal", pattern: /^%?[IQEA][BWD]?\d{1,7}(?:\.\d)?:P$/i, answer: () => ({ none: PERIPHERAL }) },
  {
    tool: "STEP 7",
    pattern:
      /^P#(?:(?<block>D[BI]\d{1,5})\.D[BI]X|(?<area>[MIQEA]) ?)(?<byte>\d{1,7})\.(?<bit>[0-7]) (?<type>[A-Z_0-9]{3,13}) (?<count>\d{1,5})$/i,
    answer({ block, area, byte, bit, type = "", count }) {
      const place = block?.toUpperCase() ?? areaOf(area);
      if (type.toUpperCase() === "BOOL")
        return {
          write: `${place}${block === undefined ? "" : `.${place.slice(0, 2)}X`}${Number(byte)}.${bit}${Number(count) === 1 ? "" : `[${count}]`}`,
        };
      return bit === "0" ? { write: inBytes(place, byte, type.toUpperCase(), count) } : undefined;
    },
  },
  { tool: "STEP 7 and Kepware", pattern: /^%?P(?:I|E|Q|A)[BWDX]? ?\d{1,7}(?:\.\d)?$/i, answer: () => ({ none: PERIPHERAL }) },
  { tool: "STEP 7", pattern: /^%?L(?:[BWD] ?)?\d{1,7}(?:\.\d)?$/i, answer: () => ({ none: LOCAL }) },
  {
    tool: "STEP 7, for the block that is open",
    pattern: /^%?(?<letters>D[BI])(?<width>[XBWD]) ?(?<rest>\d{1,7}(?:\.\d)?)$/i,
    answer: ({ letters = "", width = "", rest }) => ({
      none: `${NO_BLOCK} ${letters.toUpperCase()}1.${letters.toUpperCase()}${width.toUpperCase()}${rest}`,
    }),
  },
  {
    tool: "Node-RED (node-red-contrib-s7)",
    pattern: /^(?:DB(?<block>\d{1,5}),|(?<area>[MIQEA]))R(?:WORD|W|DWORD|DW|INT|I|DINT|DI|REAL|R)(?<byte>\d{1,7})$/i,
    answer: ({ block, area, byte }) => ({
      none: `${LITTLE_ENDIAN} ${block === undefined ? `${areaOf(area)}B${Number(byte)}[4]` : `DB${block}.DBB${Number(byte)}[4]`}`,
    }),
  },
  {
    tool: "Node-RED (node-red-contrib-s7)",
    pattern: /^DB(?<block>\d{1,5}),(?<type>DTL?)Z(?<byte>\d{1,7})$/i,
    answer: ({ block, type = "", byte }) => ({
      write: `DB${block},${type.toUpperCase()}${Number(byte)}`,
      because: "the text names no zone; the program keeps it in UTC",
    }),
  },
  {
    tool: "Node-RED (node-red-contrib-s7), or of a LOGO!,",
    pattern: /^AI(?<number>\d{1,7})$/i,
    answer({ number = "" }) {
      const meanings: Meaning[] = [
        { write: `Q,INT${Number(number)}`, when: "for an INT among the outputs" },
        { write: `DB1,WORD${1032 + 2 * (Number(number) - 1)}`, when: `for the analog input ${Number(number)} of a LOGO!` },
      ];
      return { either: Number(number) < 1 || Number(number) > 16 ? meanings.slice(0, 1) : meanings };
    },
  },
  {
    tool: "a LOGO!",
    pattern: /^(?<block>AQ|AM|NAI|NAQ|NI|NQ)(?<number>[1-9]\d?)$/i,
    answer({ block = "", number }) {
      const at = Number(number) - 1;
      const word = LOGO_WORDS[block.toUpperCase()];
      const bits = LOGO_BITS[block.toUpperCase()];
      if (word !== undefined) return { write: `DB1,WORD${word + 2 * at}` };
      return bits === undefined ? undefined : { write: `DB1.DBX${bits + (at >> 3)}.${at & 7}` };
    },
  },
  {
    tool: "Telegraf, benthos-umh or Ignition",
    pattern: new RegExp(String.raw`^(?<block>DB\d{1,5})\.(?<word>${WORDS})(?<byte>\d{1,7})(?:\.(?<extra>\d{1,5}))?${DIMENSIONS}$`, "i"),
    answer: ({ block = "", word = "", byte, extra, dimensions }) =>
      word.toUpperCase().startsWith("DB") || isOwn(word, dimensions)
        ? undefined
        : inType({ area: block.toUpperCase(), word, byte, extra, dimensions }),
  },
  {
    tool: "Ignition or MindConnect",
    pattern: new RegExp(String.raw`^(?<block>DB\d{1,5})\.DB(?<word>${WORDS})(?<byte>\d{1,7})(?:\.(?<extra>\d{1,5}))?${DIMENSIONS}$`, "i"),
    answer: ({ block = "", word = "", byte, extra, dimensions }) =>
      isOwn(word, dimensions) ? undefined : inType({ area: block.toUpperCase(), word, byte, extra, dimensions }),
  },
  {
    tool: "benthos-umh",
    pattern: new RegExp(String.raw`^(?<area>PE|PA|MK)\.(?<word>${WORDS})(?<byte>\d{1,7})(?:\.(?<extra>\d{1,5}))?$`),
    answer: ({ area, word, byte, extra }) => inType({ area: areaOf(area), word, byte, extra }),
  },
  {
    tool: "EMQX Neuron",
    pattern: /^(?<area>[OF])(?<byte>\d{1,7})(?:\.(?<bit>\d))?$/,
    answer: ({ area, byte, bit }) => ({
      write: bit === undefined ? `${areaOf(area)}W${Number(byte)}` : `${areaOf(area)}${Number(byte)}.${bit}`,
    }),
  },
  {
    tool: "Kepware or Wonderware",
    pattern: new RegExp(String.raw`^F(?<word>${WORDS})(?<byte>\d{1,7})(?:\.(?<extra>\d{1,5}))?${DIMENSIONS}$`, "i"),
    answer: ({ word, byte, extra, dimensions }) => inType({ area: "M", word, byte, extra, dimensions }),
  },
  {
    tool: "Kepware, Ignition or Node-RED",
    pattern: new RegExp(String.raw`^(?<area>[MIQEA])(?<word>${WORDS})(?<byte>\d{1,7})(?:\.(?<extra>\d{1,5}))?${DIMENSIONS}$`, "i"),
    answer: ({ area, word = "", byte, extra, dimensions }) =>
      isOwn(word, dimensions) ? undefined : inType({ area: areaOf(area), word, byte, extra, dimensions }),
  },
  {
    tool: "Kepware",
    pattern: new RegExp(String.raw`^(?<block>DB\d{1,5}),(?<word>${WORDS})(?<byte>\d{1,7})\[(?<dimensions>\d{1,5}\]\[\d{1,5})\]$`, "i"),
    answer: ({ block = "", word, byte, dimensions }) => inType({ area: block.toUpperCase(), word, byte, dimensions }),
  },
  {
    tool: "Wonderware (SIMATIC NET S7)",
    pattern: new RegExp(String.raw`^(?:(?<block>D[BI]\d{1,5}),|(?<area>[MF]))(?<word>${WORDS})(?<byte>\d{1,7}),(?<extra>\d{1,5})$`, "i"),
    answer({ block, area, word = "", byte, extra }) {
      const isText = kindOf(word) === "STRING";
      const place = block?.toUpperCase() ?? areaOf(area);
      return inType({ area: place, word, byte, ...(isText ? { extra } : { dimensions: extra }) });
    },
  },
  {
    tool: "Wonderware (SIMATIC NET S7)",
    pattern: /^(?<block>D(?<letter>[BI])\d{1,5}),(?<word>W|WORD|INT|DINT|DWORD|D)(?<byte>\d{1,7})BCD$/i,
    answer({ block = "", letter = "", word = "", byte }) {
      const [width, type] = BCD_OF[word.toUpperCase()] ?? [];
      if (width === undefined) return undefined;
      return { write: typed(`${block.toUpperCase()}.D${letter.toUpperCase()}${width}${byte}`, type) };
    },
  },
  {
    tool: "Ignition",
    pattern: /^\[[^[\]]{1,60}\](?<address>[A-Za-z%].{0,60})$/,
    answer: ({ address = "" }) => ({ write: address }),
  },
  {
    tool: "WinCC OA",
    pattern: /^[A-Za-z_][A-Za-z0-9_]{1,40}\.(?<address>(?:DB\d{1,5}\.DB|[MIQEA])[XBWD]?\d{1,7}(?:\.\d)?)$/,
    answer: ({ address = "" }) => ({ write: address }),
  },
  { tool: "TIA Portal", pattern: /^"[^"]{1,128}"(?:\..{1,200})?$/, answer: () => ({ none: SYMBOL }) },
];
