import * as z from "zod";
import "./words/issue-words.ts";
import { parseDuration } from "../base/duration.ts";
import { boundedArray, boundedRecord } from "./bounded.ts";
import { DEVICE_FAULTS } from "./fault.ts";
import { checkProfile } from "./profile-check.ts";
import { BOUND_TYPES } from "./profile-details.ts";
import { parseBytes, parseTemplate } from "./profile-template.ts";
import { SCALAR_TYPES } from "./value.ts";

const template = (words: string) =>
  z
    .string()
    .max(500)
    .superRefine((text, ctx) => {
      const parsed = parseTemplate(text);
      if (typeof parsed === "string") ctx.addIssue({ code: "custom", message: parsed });
    })
    .describe(words);

const bytes = (words: string, { canBeAny = false, least = 1, most = 64 } = {}) =>
  z
    .string()
    .superRefine((text, ctx) => {
      const parsed = parseBytes(text, { canBeAny });
      if (typeof parsed === "string") ctx.addIssue({ code: "custom", message: parsed });
      else if (parsed.length < least || parsed.length > most)
        ctx.addIssue({ code: "custom", message: `is ${parsed.length} bytes; expected ${least} to ${most}` });
    })
    .describe(words);

const duration = (fallback: string, longest: string, words: string) =>
  z
    .string()
    .refine((text) => {
      const [ms, longestMs] = [parseDuration(text), parseDuration(longest) ?? 0];
      return ms !== undefined && ms > 0 && ms <= longestMs;
    }, `expected a duration above zero and at most ${longest}, such as ${fallback}`)
    .default(fallback)
    .describe(words);

export const CHECKSUMS = ["xor", "sum8", "lrc", "crc16_modbus", "crc16_ccitt", "crc16_xmodem", "crc32"] as const;
export type ChecksumKind = (typeof CHECKSUMS)[number];

const checksum = z.strictObject({
  kind: z.enum(CHECKSUMS).describe("xor and sum8 of the bytes, lrc (the two's complement of sum8), CRCs by their usual names"),
  written: z.enum(["be", "le", "hex", "HEX"]).default("be").describe("Bytes with the high or the low one first, or hexadecimal digits"),
  at: z.enum(["before_end", "after_end"]).optional().describe("Before or behind the end of the frame; default: behind ETX, else before"),
  covers_start: z.boolean().optional().describe("Whether start or header is summed too; default: not the start character, else yes"),
  covers_end: z.boolean().optional().describe("Whether the end is summed too, where the checksum is behind it; default: yes"),
});
export type ChecksumOf = z.infer<typeof checksum>;

/** Longest frame of any profile, in bytes. */
export const MAX_PROFILE_FRAME_BYTES = 65_536;
const max_bytes = z.int().min(1).max(MAX_PROFILE_FRAME_BYTES).describe(`Longest frame, 1..${MAX_PROFILE_FRAME_BYTES} bytes`);
const CHECKSUM = "Checksum of each frame; absent: none";
const requests = z
  .enum(["framed", "raw"])
  .default("framed")
  .describe("framed: requests have the frame of answers; raw: send is the request to the byte");

const framing = z.discriminatedUnion("type", [
  z.strictObject({
    type: z.literal("delimiter").describe("A frame ends with certain bytes"),
    start: bytes("Bytes that a frame begins with; absent: none").optional(),
    end: bytes("Bytes that end a frame, such as <CR><LF>"),
    max_bytes,
    checksum: checksum.optional().describe(CHECKSUM),
    requests,
  }),
  z.strictObject({
    type: z.literal("length").describe("A header says how long a frame is"),
    header: z
      .string()
      .superRefine((text, ctx) => {
        const problem = headerProblem(text);
        if (problem !== undefined) ctx.addIssue({ code: "custom", message: problem });
      })
      .describe("Header of a frame with {length:FORMAT} once, such as \\xAA\\x55{length:u16be} or {length:d4}; <ANY> in it: any byte"),
    counts: z
      .enum(["payload", "rest", "frame"])
      .default("rest")
      .describe("payload; rest: all behind the header, checksum with it; frame: all"),
    max_bytes,
    checksum: checksum.optional().describe(CHECKSUM),
    requests,
  }),
  z.strictObject({
    type: z.literal("fixed").describe("Each frame has the same size"),
    start: bytes("Bytes that a frame begins with; absent: none").optional(),
    bytes: z.int().min(1).max(MAX_PROFILE_FRAME_BYTES).describe("Size of an answer, with start and checksum"),
    checksum: checksum.optional().describe(CHECKSUM),
    requests,
  }),
  z.strictObject({
    type: z.literal("control").describe("Control characters around a frame, with an escape character or without"),
    start: bytes("Start, such as <STX>", { most: 2 }).default("<STX>"),
    end: bytes("End, such as <ETX>", { most: 2 }).default("<ETX>"),
    escape: bytes("Character before one that is meant as it is, such as <DLE>; absent: none", { most: 1 }).optional(),
    escape_xor: z.int().min(0).max(255).default(0).describe("What the character behind the escape is combined with by xor"),
    alone: bytes("Characters that are an answer by themselves, such as <EOT><NAK>", { least: 0 }).default(""),
    max_bytes,
    checksum: checksum.optional().describe(CHECKSUM),
    requests,
  }),
  z.strictObject({
    type: z.literal("x328").describe("ANSI X3.28, subcategory 2.5, A4: polls EOT … ENQ, answers STX … ETX BCC"),
    max_bytes: max_bytes.default(256),
    checksum: z.enum(["xor", "sum8", "none"]).default("xor").describe("Block check behind ETX, of all behind STX with ETX"),
  }),
]);
export type FramingOf = z.infer<typeof framing>;

function headerProblem(text: string): string | undefined {
  const parsed = parseTemplate(text, { canBeAny: true });
  if (typeof parsed === "string") return parsed;
  const placeholders = parsed.flatMap((part) => ("placeholder" in part ? [part] : []));
  const [length] = placeholders;
  if (placeholders.length !== 1 || length?.placeholder !== "length")
    return "expected {length:FORMAT} exactly once, and no other placeholder";
  const { format } = length;
  if (format.kind === "text") return `${length.text}: a length is a number: u8, u16be, u16le, u32be, d4, x4 …`;
  if (format.kind !== "binary" && (format.width === undefined || format.width > 8))
    return `${length.text}: expected a width of 1 to 8 digits`;
  return format.kind === "binary" && format.isSigned ? `${length.text}: a length has no sign` : undefined;
}

const NAME = /^[a-z][a-z0-9_]{0,63}$/;
const name = z.string().regex(NAME, "expected a name of a-z, 0-9 and _ that begins with a letter");
const named = <T extends z.ZodType>(schema: T, most: number) =>
  boundedRecord(schema, most).superRefine((all, ctx) => {
    for (const key of Object.keys(all))
      if (!NAME.test(key))
        ctx.addIssue({ code: "custom", path: [key], message: "expected a name of a-z, 0-9 and _ that begins with a letter" });
  });

/** Characters that a text may have: never control characters, and no other sign than those that the profile lists. */
const text = {
  max_length: z.int().min(1).max(64).default(16).describe("Longest text, 1..64 characters"),
  also: z
    .string()
    .max(20)
    .regex(/^[ -~]*$/, "expected printable ASCII")
    .default("")
    .describe("Characters that it may have in addition to letters, digits and _"),
};
const number = {
  min: z.int().default(0).describe("Smallest value"),
  max: z.int().describe("Largest value"),
};

const argument = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("text").describe("Letters, digits and _"), ...text }),
  z.strictObject({ type: z.literal("integer").describe("A whole number"), ...number }),
]);
export type ArgumentOf = z.infer<typeof argument>;

const DESCRIPTION = z.string().max(500).optional().describe("What it is, for people");
const parameter = z.discriminatedUnion("type", [
  z.strictObject({
    type: z.literal("text").describe("Letters, digits and _"),
    ...text,
    default: z.string().max(64).optional().describe("Value where the settings give none; absent: they must"),
    description: DESCRIPTION,
  }),
  z.strictObject({
    type: z.literal("integer").describe("A whole number"),
    ...number,
    default: z.int().optional().describe("Value where the settings give none; absent: they must"),
    description: DESCRIPTION,
  }),
  z.strictObject({
    type: z.literal("detail").describe("A field of the data source's details in the API"),
    detail: name.describe("machine, initialization_mode, protocol_override or readout_mode"),
    values: boundedRecord(z.union([z.string().max(64), z.int()]), 10).describe(
      "What each value of the field becomes; others cannot be read",
    ),
    description: DESCRIPTION,
  }),
]);
export type ParameterOf = z.infer<typeof parameter>;

const match = {
  equals: template("The whole payload").optional(),
  begins: template("How the payload begins").optional(),
  ends: template("How the payload ends").optional(),
  contains: template("What is anywhere in the payload").optional(),
};
const ok = z.strictObject({ begins: match.begins, ends: match.ends });

export const PROFILE_REASONS = ["TIMEOUT", "CONNECTION_CLOSED", "HOST_DOWN", "UNKNOWN"] as const;

const errorAnswer = z.strictObject({
  ...match,
  fault: z.enum(DEVICE_FAULTS).optional().describe("What it says of the variables that were asked for"),
  about: z
    .enum(["variables", "busy", "everything"])
    .default("variables")
    .describe("With a fault: the variables, the device at this moment (busy), or all requests (everything)"),
  reason: z.enum(PROFILE_REASONS).optional().describe("What it says of the device as a whole"),
  meaning: z.string().min(1).max(300).describe("What it means, for people"),
});
export type ErrorAnswer = z.infer<typeof errorAnswer>;

const request = z.strictObject({
  reads: z.string().min(1).max(300).describe("What the request reads, and where the manual says that it changes nothing"),
  send: template("The request; absent: the device sends without one").optional(),
  arguments: named(argument, 8).default({}).describe("Values that an address gives, by name; they follow the variable's name: NAME/VALUE"),
  ok: ok
    .default({})
    .describe("What a good answer begins and ends with; taken away before values are looked for. Absent: any other answer is good"),
  finish: template("What is sent after the answer, without an answer of its own; absent: nothing").optional(),
});
export type RequestOf = z.infer<typeof request>;

const BINARY = [
  "u8",
  "i8",
  "u16be",
  "u16le",
  "i16be",
  "i16le",
  "u32be",
  "u32le",
  "i32be",
  "i32le",
  "u64be",
  "u64le",
  "i64be",
  "i64le",
] as const;
const FLOATS = ["f32be", "f32le", "f64be", "f64le"] as const;
/** Numbers that are of no type of a value: of 48 bits, floats of 16, and two decimal digits in each byte. */
const CODED = [
  "u48be",
  "u48le",
  "i48be",
  "i48le",
  "f16be",
  "f16le",
  "bcd8",
  "bcd16be",
  "bcd16le",
  "bcd32be",
  "bcd32le",
  "bcd64be",
  "bcd64le",
] as const;
export const BINARY_FORMATS = [...BINARY, ...FLOATS, ...CODED] as const;
export type BinaryFormat = (typeof BINARY_FORMATS)[number];

const variable = z.strictObject({
  request: name.describe("Name of the request whose answer has it"),
  bytes: z
    .strictObject({
      at: z.int().min(0).max(MAX_PROFILE_FRAME_BYTES).describe("Bytes before it in the payload"),
      format: z.enum(BINARY_FORMATS).describe("Size, sign and order; bcd: two decimal digits in each byte"),
      bit: z.int().min(0).max(63).optional().describe("One bit of it, 0 the lowest: a bool"),
    })
    .optional()
    .describe("A number in binary"),
  field: z
    .strictObject({
      separator: bytes("What is between two fields, such as ; or <HT>", { most: 4 }),
      index: z.int().min(1).max(1000).describe("Which field, the first is 1"),
    })
    .optional()
    .describe("One of several texts with a separator between them"),
  column: z
    .strictObject({
      from: z.int().min(1).max(MAX_PROFILE_FRAME_BYTES).describe("Its first character, the first of the payload is 1"),
      to: z.int().min(1).max(MAX_PROFILE_FRAME_BYTES).describe("Its last character"),
    })
    .optional()
    .describe("A text at a fixed place"),
  pattern: z
    .string()
    .max(200)
    .regex(/^[^\0]*\{value\}[^\0]*$/, "expected a text with {value} once, such as T={value} C")
    .optional()
    .describe("What is before and behind the text, with {value} for it; * in it: any characters"),
  whole: z.literal(true).optional().describe("The whole payload is the text"),
  type: z.enum(SCALAR_TYPES).optional().describe("Type of the value; default: float64 of a text, what the format holds of bytes"),
  radix: z
    .union([z.literal(10), z.literal(16)])
    .default(10)
    .describe("Of a number in a text: 10 or 16"),
  hex_prefix: z.string().min(1).max(4).optional().describe("A text that begins with it is a hexadecimal number, such as >"),
  true: z.string().max(32).optional().describe("Text of true; default: 1"),
  false: z.string().max(32).optional().describe("Text of false; default: 0"),
  factor: z.number().optional().describe("The value is what was read, times this"),
  offset: z.number().optional().describe("and plus this"),
  unit: z.string().max(50).optional().describe("Unit of the value"),
  comment: z.string().max(500).optional().describe("What it is"),
});
export type ProfileVariable = z.infer<typeof variable>;

const plain = z.strictObject({
  profile: z.literal(1).describe("Version of this form of a profile: 1"),
  name: z.string().min(1).max(100).describe("Name of the profile, for status"),
  for: boundedArray(z.enum(BOUND_TYPES), BOUND_TYPES.length).min(1).describe("Types of data sources that it may read"),
  accepts: boundedRecord(boundedArray(z.string(), 10), 4)
    .default({})
    .describe("Values of the details that it is for, such as machine: [C4, C5]; absent: any"),
  verified_on: boundedArray(z.string().min(1).max(200), 20)
    .default([])
    .describe("Devices that it was tried on, with model, firmware and date; shown in status. Empty: none"),
  source: z.string().max(500).optional().describe("Where the protocol is described: manual, edition, page"),
  role: z.enum(["client", "listener"]).default("client").describe("client: the collector connects; listener: the device does"),
  framing: framing.describe("What a frame is"),
  parameters: named(parameter, 20).default({}).describe("Values that a data source gives in its settings, by name"),
  answer_within: duration("3s", "60s", "Longest time from a request to the end of its answer; answer_timeout of the source holds too"),
  between_bytes: duration("500ms", "10s", "Longest time between two parts of one frame"),
  pause: z
    .string()
    .refine((words) => (parseDuration(words) ?? 1e9) <= 10_000, "expected a duration of at most 10s, such as 50ms")
    .optional()
    .describe("What the device needs between an answer and the next request; absent: nothing"),
  resync: z
    .enum(["close", "start"])
    .default("close")
    .describe(
      "After bytes that do not make a good frame. close: connect again; start: skip to the next start, and wait on until answer_within",
    ),
  stale_after: duration("60s", "24h", "Values that the device sent without a request: older ones are stale"),
  errors: boundedArray(errorAnswer, 50).default([]).describe("Answers that are errors; looked at before ok, the first that fits counts"),
  connect: boundedArray(name, 10).default([]).describe("Requests that are sent once when connected, in this order"),
  requests: named(request, 100).describe("What can be sent, and nothing else, by name"),
  variables: named(variable, 5000).describe("What can be read, by name"),
  bare_address: name.optional().describe("The variable whose arguments are meant where an address begins with no variable's name"),
});
export type Profile = z.infer<typeof plain>;

/** A profile: how a device with frames over TCP is asked, as data. Every name in it is checked; nothing in it is calculated. */
export const profileSchema = plain.superRefine((profile, ctx) => {
  for (const { path, message } of checkProfile(profile)) ctx.addIssue({ code: "custom", path: [...path], message });
});
