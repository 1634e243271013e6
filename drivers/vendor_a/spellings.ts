import { type Form, typed } from "../lib/spellings.ts";

const CLASS_PATH = "attributes of CIP objects are not read, only tags";
const TAG_SET = "tag sets are data of an implicit connection, which the collector does not open; read the tags by their names";
const INDEX_TAG = "a tag as an index is not followed; write the number, for example";

/** Types of plc4x that a tag may be read as. */
const TYPES = "BOOL|SINT|USINT|INT|UINT|DINT|UDINT|LINT|ULINT|REAL|LREAL|BYTE|WORD|DWORD|LWORD|STRING";

/** Elements of data files have a colon too, and are no tags with a count. */
const NO_FILE = String.raw`(?!(?:ST|[ABCFILNORST])\d{0,3}:\d{1,4}(?:[{/]|\.\d|$))`;

const counted = (tag: string, count: string | undefined): string =>
  count === undefined || Number(count) === 1 ? tag : `${tag}{${Number(count)}}`;

/** The more particular first. */
export const FORMS: readonly Form[] = [
  { tool: "RSLogix 5 or 500", pattern: /^#(?<element>[A-Z]{1,2}\d{0,3}:\d{1,4})$/i, answer: ({ element = "" }) => ({ write: element }) },
  {
    tool: "nodepccc",
    pattern: /^(?<element>[A-Z]{1,2}\d{0,3}:\d{1,4}),(?<count>\d{1,4})$/i,
    answer: ({ element = "", count }) => ({ write: counted(element, count) }),
  },
  {
    tool: "EMQX Neuron",
    pattern: /^(?<letter>[IO])\/(?<bit>\d{1,4})$/i,
    answer: ({ letter = "", bit }) => ({ none: `name the slot, for example ${letter.toUpperCase()}:0/${bit}` }),
  },
  {
    tool: "plc4x",
    pattern: /^(?<element>[A-Z]{1,2}\d{0,3}:\d{1,4}(?:\/\d{1,2})?):(?:WORD|INTEGER|SINGLEBIT)(?:\[(?<count>\d{1,4})\])?$/i,
    answer: ({ element = "", count }) => (element.includes("/") || count !== undefined ? { write: counted(element, count) } : undefined),
  },
  {
    tool: "plc4x",
    pattern: /^[A-Z]{1,2}\d{0,3}:\d{1,4}:DWORD(?:\[\d{1,4}\])?$/i,
    answer: () => ({ none: "two words of a file are not read as one number; read both" }),
  },
  {
    tool: "plc4x",
    pattern: new RegExp(
      String.raw`^%?${NO_FILE}(?<tag>[A-Za-z_][\w:.]{0,200}?(?:\[[\d, ]{1,40}\])?)(?::(?<type>${TYPES}))?(?::(?<count>\d{1,5}))$`,
    ),
    answer: ({ tag = "", type, count }) => ({ write: typed(counted(tag, count), type === "STRING" ? undefined : type) }),
  },
  {
    tool: "plc4x",
    pattern: new RegExp(String.raw`^%?(?<tag>[A-Za-z_][\w:.]{0,200}?(?:\[[\d, ]{1,40}\])?):(?<type>${TYPES})$`),
    answer: ({ tag = "", type }) => ({ write: typed(tag, type === "STRING" ? undefined : type) }),
  },
  { tool: "plc4x", pattern: /^%(?<tag>[A-Za-z_][\w:.[\], ]{0,200})$/, answer: ({ tag = "" }) => ({ write: tag }) },
  {
    tool: "RSLinx",
    pattern: /^(?:\[[^[\]]{1,60}\])?(?<tag>[A-Za-z_][\w:.[\]]{0,200}),L(?<count>\d{1,4})(?:,C\d)?$/,
    answer: ({ tag = "", count }) => ({ write: counted(tag, count) }),
  },
  { tool: "Ignition or RSLinx", pattern: /^\[[^[\]]{1,60}\](?<tag>[A-Za-z_].{0,200})$/, answer: ({ tag = "" }) => ({ write: tag }) },
  {
    tool: "Studio 5000, for a parameter of a program",
    pattern: /^\\(?<program>[A-Za-z_]\w{0,39})\.(?<tag>.{1,200})$/,
    answer: ({ program, tag }) => ({ write: `Program:${program}.${tag}` }),
  },
  {
    tool: "Kepware",
    pattern: /^(?<tag>[A-Za-z_][\w:.[\], ]{0,200}?) ?\{(?<rows>\d{1,4})\} ?\{(?<columns>\d{1,4})\}$/,
    answer: ({ tag = "", rows, columns }) => ({
      write: counted(tag, String(Number(rows) * Number(columns))),
      because: "elements come row by row",
    }),
  },
  {
    tool: "Kepware",
    pattern: new RegExp(String.raw`^${NO_FILE}(?<tag>[A-Za-z_][\w:.[\],]{0,200}?)(?:\.DATA)?/(?<chars>\d{1,4})$`, "i"),
    answer: ({ tag = "" }) => ({ write: tag, because: "a text has the length that the controller says" }),
  },
  {
    tool: "Studio 5000 or Kepware",
    pattern: /^(?<tag>[A-Za-z_][\w:.]{0,200}?)(?<dot>\.)?\[(?<index>[A-Za-z_][\w.]{0,100})\](?<rest>\.[\w.]{1,100})?$/,
    answer: ({ tag, dot, rest = "" }) => ({ none: `${INDEX_TAG} ${dot === undefined ? `${tag}[0]${rest}` : `${tag}.0`}` }),
  },
  {
    tool: "libplctag",
    pattern: /^(?<attributes>(?:[a-z_]{2,30}=[^&=]{0,100}&){1,10}[a-z_]{2,30}=[^&=]{0,100})$/i,
    answer({ attributes = "" }) {
      const fields = new URLSearchParams(attributes);
      const name = fields.get("name");
      return name === null || !fields.has("protocol") ? undefined : { write: counted(name, fields.get("elem_count") ?? undefined) };
    },
  },
  { tool: "benthos-umh", pattern: /^\d{1,5}-\d{1,5}-\d{1,5}$/, answer: () => ({ none: CLASS_PATH }) },
  { tool: "WinCC OA", pattern: /^[A-Za-z_]\w{0,60}\/\d{1,5}:\d{1,5}$/, answer: () => ({ none: TAG_SET }) },
];
