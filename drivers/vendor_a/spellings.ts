import { type Answer, type Form, typed } from "../lib/spellings.ts";

const DATA_TABLE =
  "is a data table of an SLC, MicroLogix or PLC-5, which this driver does not read. On a Logix controller read the tag that is mapped to the file";
const CLASS_PATH = "attributes of CIP objects are not read, only tags";
const TAG_SET = "tag sets are data of an implicit connection, which the collector does not open; read the tags by their names";
const INDEX_TAG = "a tag as an index is not followed; write the number, for example";

/** Types of plc4x that a tag may be read as. */
const TYPES = "BOOL|SINT|USINT|INT|UINT|DINT|UDINT|LINT|ULINT|REAL|LREAL|BYTE|WORD|DWORD|LWORD|STRING";

const counted = (tag: string, count: string | undefined): string =>
  count === undefined || Number(count) === 1 ? tag : `${tag}{${Number(count)}}`;

function inFile(file: string | undefined): Answer {
  return { none: `it ${DATA_TABLE} (${file?.toUpperCase()}, under Map PLC/SLC Messages)` };
}

/** The more particular first. */
export const FORMS: readonly Form[] = [
  {
    tool: "RSLogix 5 or 500",
    pattern:
      /^(?:\[[^[\]]{1,60}\])?(?<file>(?:ST|MG|PD|PLS|[ABCDFILNORST])\d{0,3}):\d{1,4}(?:[./]\d{1,4}|\.(?:ACC|PRE|LEN|POS|EN|TT|DN|CU|CD)|\/(?:ACC|PRE|EN|TT|DN|CU|CD|ER|UL|IN|FD)){0,2}(?:,L?\d{1,4}(?:,C\d)?)?(?::(?:STATUS|BIT|TIMER|COUNTER|CONTROL|INTEGER|FLOAT|OUTPUT|INPUT|STRING|ASCII|BCD|WORD|DWORD|SINGLEBIT)(?:\[\d{1,4}\])?)?$/i,
    answer: ({ file }) => inFile(file),
  },
  { tool: "RSLogix 5 or 500", pattern: /^(?<file>[BIO]\d{0,3})\/\d{1,5}$/i, answer: ({ file }) => inFile(file) },
  {
    tool: "plc4x",
    pattern: new RegExp(String.raw`^%?(?<tag>[A-Za-z_][\w:.]{0,200}?(?:\[[\d, ]{1,40}\])?)(?::(?<type>${TYPES}))?(?::(?<count>\d{1,5}))$`),
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
    pattern: /^(?<tag>[A-Za-z_][\w:.[\],]{0,200}?)(?:\.DATA)?\/(?<chars>\d{1,4})$/i,
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
