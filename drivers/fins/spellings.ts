import { type Answer, type Form, typed } from "../lib/spellings.ts";

const AREA_OF_NAME: Readonly<Record<string, string>> = {
  CIO: "CIO",
  IR: "CIO",
  SR: "CIO",
  W: "W",
  WR: "W",
  H: "H",
  HR: "H",
  A: "A",
  AR: "A",
  D: "D",
  DM: "D",
  T: "T",
  TIM: "T",
  C: "C",
  CNT: "C",
  L: "L",
  LR: "L",
  E: "E",
  EM: "E",
};
/** Types of Ignition, by their names here. */
const TYPES: Readonly<Record<string, string>> = {
  INT16: "INT",
  INT32: "DINT",
  INT64: "LINT",
  UINT16: "UINT",
  UINT32: "UDINT",
  FLOAT: "REAL",
  DOUBLE: "LREAL",
  BCD16: "BCD",
  BCD32: "UDINT_BCD",
};

const NO_AREA = "it names no memory area. Read the words of the variable at their place, for example";
const EACH_BYTE = "a text with the first character in the low byte is not read; read its words, for example";

const entry = (table: Readonly<Record<string, string>>, key: string | undefined): string | undefined =>
  key !== undefined && Object.hasOwn(table, key) ? table[key] : undefined;

interface Parts {
  readonly area: string;
  readonly bank?: string | undefined;
  readonly number: string | undefined;
  readonly bit?: string | undefined;
  readonly count?: number | undefined;
}

function here({ area, bank, number, bit, count }: Parts): string {
  const name = bank === undefined ? area : `E${Number.parseInt(bank, 16).toString(16).toUpperCase()}_`;
  return `${name}${Number(number)}${bit === undefined ? "" : `.${bit.padStart(2, "0")}`}${count === undefined || count === 1 ? "" : `[${count}]`}`;
}

/** A text of Neuron: H the first character in the high byte, as here; L in the low byte. */
function textOf(parts: Parts, chars: string | undefined, order: string | undefined): Answer {
  if (order === "L") return { none: `${EACH_BYTE} ${here({ ...parts, count: Math.ceil(Number(chars) / 2) })}` };
  return { write: typed(here(parts), `STRING[${Number(chars)}]`) };
}

const NAMES = "CIO|IR|SR|WR?|HR?|AR?|DM?|TIM|T|CNT|C|LR?";

/** The more particular first. */
export const FORMS: readonly Form[] = [
  {
    tool: "CX-Programmer, where a number alone is the CIO area",
    pattern: /^(?<number>\d{1,5})(?:\.(?<bit>\d{1,2}))?$/,
    answer: ({ number, bit }) => ({ write: here({ area: "CIO", number, bit }) }),
  },
  {
    tool: "CX-Programmer, for an indirect address",
    pattern: /^[@*](?<area>DM?|EM?|E[0-9A-F]{1,2}_)(?<number>\d{1,5})$/i,
    answer: ({ area = "", number }) => ({
      none: `the word ${area.toUpperCase()}${Number(number)} holds the address of the value; read that word, and the place that it names`,
    }),
  },
  {
    tool: "CX-Programmer, for a constant",
    pattern: /^[#&+](?<digits>[0-9A-F]{1,8})$/i,
    answer: () => ({ none: "a constant has no place in the memory" }),
  },
  {
    tool: "CX-Programmer",
    pattern: /^(?<area>D|W|H|A|CIO|T|C|TIM|CNT|DM|WR|HR|AR) (?<number>\d{1,5})(?:\.(?<bit>\d{1,2}))?$/i,
    answer: ({ area = "", number, bit }) => ({ write: here({ area: entry(AREA_OF_NAME, area.toUpperCase()) ?? "D", number, bit }) }),
  },
  {
    tool: "CX-Programmer, for a C200H",
    pattern: /^(?:IR|SR)(?<number>\d{1,5})(?:\.(?<bit>\d{1,2}))?$/i,
    answer({ number, bit }) {
      const write = here({ area: "CIO", number, bit });
      if (Number(number) > 15 || bit !== undefined) return { write };
      return {
        either: [
          { write: `IR${Number(number)}`, when: "for the index register of a CS or CJ" },
          { write, when: "for the word of a C200H" },
        ],
      };
    },
  },
  {
    tool: "AVEVA Plant SCADA",
    pattern: /^EM?(?<bank>\d{1,2}):(?<number>\d{1,5})(?:\.(?<bit>\d{1,2}))?$/i,
    answer: ({ bank, number, bit }) => ({ write: here({ area: "E", bank: Number(bank).toString(16), number, bit }) }),
  },
  {
    tool: "AVEVA Plant SCADA",
    pattern: /^(?<area>[TC])F(?<number>\d{1,4})$/i,
    answer: ({ area = "", number }) => ({ write: typed(`${area.toUpperCase()}${Number(number)}`, "BOOL") }),
  },
  {
    tool: "AVEVA Plant SCADA",
    pattern: /^(?:S\.[A-Z.]{3,20}|EMN|TK\d{1,2}|TR(?:\.\d{1,2})?|ST\d{1,4})$/,
    answer: () => ({ none: "it is not a word of a memory area. Status, task flags and steps are not read; copy the value to D or W" }),
  },
  {
    tool: "Ignition",
    pattern: new RegExp(
      String.raw`^(?<device>\[[^\[\]]{1,60}\])?(?:(?<area>${NAMES})|E(?<bank>[01][0-9A-F])|(?<current>EM))(?:<(?<type>[A-Z]{3,6}(?:16|32|64)?)(?:@(?<order>BE|LE|HL|LH))?>)?(?<number>\d{1,5})(?:\.(?<bit>\d{1,2}))?$`,
      "i",
    ),
    answer({ device, area = "", bank, current, type, order, number = "", bit }) {
      // `D100` and `E00100` are addresses here too.
      if (device === undefined && type === undefined && (bank === undefined || /^\d{3,5}$/.test(`${bank}${number}`))) return undefined;
      const of = current === undefined && bank === undefined ? entry(AREA_OF_NAME, area.toUpperCase()) : "E";
      const parts = { area: of ?? "E", bank, number, bit };
      const name = type?.toUpperCase() ?? "INT16";
      if (name === "BOOL" || name === "BIT") {
        if (bit !== undefined) return { write: here(parts) };
        return of === "T" || of === "C" ? { write: typed(here(parts), "BOOL") } : undefined;
      }
      const wanted = entry(TYPES, name);
      if (wanted === undefined) return undefined;
      if (bit !== undefined) return bitOf(parts, wanted);
      const swap = order?.toUpperCase();
      if (swap === "LE" || (swap === "HL" && !name.endsWith("16")))
        return {
          none: `numbers in another order than the controller's own are not read; read the words, for example ${here({ ...parts, count: 2 })}`,
        };
      return { write: typed(here(parts), wanted) };
    },
  },
  {
    tool: "EMQX Neuron",
    pattern: /^EM(?<bank>[0-9A-F]{1,2})W(?<number>\d{1,5})(?:\.(?<bit>\d{1,3})(?<order>[HL])?)?$/i,
    answer: ({ bank, number, bit, order }) =>
      order === undefined
        ? { write: here({ area: "E", bank, number, bit }) }
        : textOf({ area: "E", bank, number }, bit, order.toUpperCase()),
  },
  {
    tool: "EMQX Neuron",
    pattern: /^(?<area>CIO|A|W|H|D)(?<number>\d{1,5})\.(?<chars>\d{1,3})(?<order>[HL])?$/,
    answer({ area, number, chars, order }) {
      const parts = { area: area ?? "D", number };
      if (order !== undefined) return textOf(parts, chars, order);
      // Documents of that tool disagree about the order of a text without a letter.
      return Number(chars) > 15
        ? {
            write: typed(here(parts), `STRING[${Number(chars)}]`),
            because: `where a bit is meant: the bit is ${Number(chars)}, a word has 0 to 15`,
          }
        : undefined;
    },
  },
  {
    tool: "EMQX Neuron",
    pattern: /^P(?<number>\d{1,5})$/,
    answer: ({ number }) => ({
      either: [
        { write: `T${Number(number)}`, when: "for the present value of a timer" },
        { write: `C${Number(number)}`, when: "for the present value of a counter" },
      ],
    }),
  },
  {
    tool: "Sysmac Studio",
    pattern: /^%(?<area>[WHD]|E[0-9A-F]{1,2}_)(?<number>\d{1,5})(?:\.(?<bit>\d{1,2}))?$/i,
    answer({ area = "", number, bit }) {
      const bank = /^E([0-9A-F]{1,2})_$/i.exec(area)?.[1];
      return { write: here({ area: area.toUpperCase(), bank, number, bit }) };
    },
  },
  {
    tool: "Sysmac Studio",
    pattern: /^[A-Za-z_]\w{2,60}(?:\[\d{1,5}\])?(?:\.[A-Za-z_]\w{0,60}){1,5}$/,
    answer: () => ({ none: `${NO_AREA} D100; a variable of an NJ or NX has one where it is mapped (AT)` }),
  },
];

/** A bit of a number of one word or more: its words have the low one first. */
function bitOf(parts: Parts, type: string): Answer | undefined {
  const bit = Number(parts.bit);
  const words: Readonly<Record<string, number>> = { INT: 1, UINT: 1, DINT: 2, UDINT: 2, LINT: 4 };
  if (bit >= (words[type] ?? 0) * 16) return undefined;
  return { write: here({ ...parts, number: String(Number(parts.number) + (bit >> 4)), bit: String(bit & 15) }) };
}
