import type { Form } from "../lib/spellings.ts";

const ABSOLUTE =
  'it is a place, and this driver reads by symbols; write the symbol, for example "Motor_DB".speed, as collector browse shows it, or read the place with the driver s7';
const SLICE = "parts of a number are not read; read the number";
const LOCAL = "# marks a variable of the block that is being edited; write the block before it, for example";

/** Absolute addresses, by who writes them. */
const ABSOLUTES: readonly (readonly [tool: string, pattern: RegExp])[] = [
  ["STEP 7 or TIA Portal", /^P#.{1,60}$/i],
  ["STEP 7, TIA Portal or another tool", /^%?D[BI] ?\d{1,5} ?(?:[.,:] ?[A-Z]{0,14}\d.{0,40})$/i],
  [
    "STEP 7, TIA Portal or another tool",
    /^%?(?:[MIQEAVOFL]|P[IEQA])(?:[XBWD]|[A-Z]{1,6})? ?\d{1,7}(?:\.\d{1,3})?(?::P|:[A-Z_\d]{3,13})?(?:\[[\d,]{1,20}\])?$/i,
  ],
  ["STEP 7 or TIA Portal", /^%?[TCZ] ?\d{1,5}$/i],
  ["benthos-umh", /^(?:PE|PA|MK)\.[A-Z]{1,2}\d{1,7}(?:\.\d{1,3})?$/],
];
const SLICED = /^(?<symbol>.{1,200})\.%[XBWD]\d{1,2}$/;

const isSymbol = (text: string): boolean =>
  !SLICED.test(text) && !text.startsWith("#") && !ABSOLUTES.some(([, pattern]) => pattern.test(text));

/**
 * Forms that are refused at once, and forms that may be symbols too: those are answered when the CPU has no such symbol. The more particular
 * first.
 */
export const FORMS: readonly Form[] = [
  {
    tool: "an OPC UA client",
    pattern: /^(?:ns=\d{1,5};s=|nsu=[^;]{1,200};s=|\d{1,5}!|NS\d{1,5}\|String\|)(?<symbol>"[^"]{1,128}".{0,250})$/i,
    answer: ({ symbol = "" }) => ({ write: symbol }),
  },
  {
    tool: "Ignition",
    pattern: /^\[[^[\]"]{1,60}\](?<symbol>["A-Za-z_].{0,250})$/,
    answer: ({ symbol = "" }) => (isSymbol(symbol) ? { write: symbol } : { none: ABSOLUTE }),
  },
  {
    tool: "TIA Portal, for a slice",
    pattern: SLICED,
    answer: ({ symbol }) => ({ none: `${SLICE} ${symbol}` }),
  },
  {
    tool: "TIA Portal",
    pattern: /^#(?<name>"?[^"#.]{1,128}"?)(?:\..{1,200})?$/,
    answer: ({ name }) => ({ none: `${LOCAL} "Motor_DB".${name}` }),
  },
  ...ABSOLUTES.map(([tool, pattern]) => ({ tool, pattern, answer: () => ({ none: ABSOLUTE }) })),
];
