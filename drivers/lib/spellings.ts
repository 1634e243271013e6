import { withoutCredentials } from "../../src/base/plain-text.ts";
import { FaultError } from "../../src/model/fault.ts";
import { type DataType, parseDataType } from "../../src/model/value.ts";
import { quote } from "./text.ts";

/** An address in our words, or why there is none. The type follows the address where the address alone does not say it: `holding:4 with the type float32`. */
export type Answer =
  | { readonly write: string; readonly because?: string }
  /** One text with several meanings, each with the words that tell it from the others. */
  | { readonly either: readonly Meaning[] }
  /** Why there is no such place, and what to do. */
  | { readonly none: string };

export interface Meaning {
  readonly write: string;
  readonly when: string;
  /** The meaning of a tool whose addresses count from here; absent: another thing tells it from the others. */
  readonly countsFrom?: 0 | 1;
}

/** The refusal of an address of another tool, for programs that know which tool wrote it. */
export class ForeignAddress extends FaultError {
  /** The answers of all forms that fit, each with the tools that write so. */
  readonly answers: readonly { readonly tool: string; readonly answer: Answer }[];
  constructor(words: string, answers: ForeignAddress["answers"]) {
    super("address_invalid", words);
    this.answers = answers;
  }
}

type Groups = Readonly<Record<string, string | undefined>>;

/** A form of addresses of other tools. It never decides about an address of ours: the driver's own parser has refused the text before. */
export interface Form {
  readonly tool: string;
  readonly pattern: RegExp;
  /** By the named groups of a match. Undefined: the text only resembles the form. */
  answer(groups: Groups): Answer | undefined;
}

/** One address of a tool, for the tests and the tables of the documents. */
export interface Spelling {
  readonly text: string;
  /** Our words for the place, and the place itself, which the driver's parser must confirm; two or more: the text has several meanings. */
  readonly ours?: readonly (readonly [write: string, place: string])[];
  /** Words of the answer where there is no such place. */
  readonly none?: string;
  /** The text is an address here too, of another place: no parser can tell which one is meant. */
  readonly isOther?: true;
}

/** Spellings of one tool, by one public document. */
export interface ToolSpellings {
  readonly tool: string;
  readonly source: string;
  /** The document was not opened for this: somebody who has it has still to confirm these. */
  readonly isFromMemory?: true;
  readonly spellings: readonly Spelling[];
}

export const is = (text: string, write: string, place: string): Spelling => ({ text, ours: [[write, place]] });
export const either = (text: string, ...ours: readonly (readonly [write: string, place: string])[]): Spelling => ({ text, ours });
export const none = (text: string, words: string): Spelling => ({ text, none: words });

export const other = (text: string, write: string, place: string): Spelling => ({ ...is(text, write, place), isOther: true });

const TYPE = " with the type ";
/** Longer texts have no form of other tools. */
const MAX_CHARACTERS = 300;
const UNPRINTABLE = /[\p{Cc}\u2028\u2029]/u;
const COUNTS = ["no", "one", "two", "three", "four", "five", "six"];

export const typed = (address: string, type: string | undefined): string => (type === undefined ? address : `${address}${TYPE}${type}`);

/** Address and type of what an answer says to write. Pure. */
export function splitTyped(write: string): { readonly address: string; readonly type: string | undefined } {
  const [address = "", type] = write.split(TYPE);
  return { address, type };
}

/** A driver's own parser of addresses. Throws FaultError. */
type Parse<T> = (text: string, type: DataType | undefined) => T;
type ParseType = (text: string) => DataType | undefined;

/**
 * Gives what `parse` gives. Where it refuses the text itself, and a form of other tools fits, the refusal says our words for that place.
 * An answer that this parser would refuse is not given. `parseType`: types of this driver alone.
 */
export function parseOrAnswer<T>(
  text: string,
  type: DataType | undefined,
  forms: readonly Form[],
  parse: Parse<T>,
  parseType?: ParseType,
): T {
  try {
    return parse(text, type);
  } catch (error) {
    if (!(error instanceof FaultError) || error.fault !== "address_invalid") throw error;
    const answers = answersFor(text, forms, parse, parseType, type !== undefined);
    const [first] = answers;
    throw first === undefined ? error : new ForeignAddress(sentence(text, first), answers);
  }
}

/** The sentence for an address of another tool; undefined: no form fits. Pure. */
export function answerFor(text: string, forms: readonly Form[], parse: Parse<unknown>, parseType?: ParseType): string | undefined {
  const [first] = answersFor(text, forms, parse, parseType, false);
  return first && sentence(text, first);
}

// Parts of the text stand in the answer: a URL keeps its user and password to itself there too.
const sentence = (text: string, { tool, answer }: ForeignAddress["answers"][number]): string =>
  withoutCredentials(`${quote(text)} is an address of ${tool}${wordsOf(answer)}`);

/** `hasType`: the person has named a type, which stays. */
function answersFor(
  text: string,
  forms: readonly Form[],
  parse: Parse<unknown>,
  parseType: ParseType | undefined,
  hasType: boolean,
): ForeignAddress["answers"] {
  const plain = text.trim();
  if (plain.length > MAX_CHARACTERS || UNPRINTABLE.test(plain)) return [];
  return forms.flatMap(({ tool, pattern, answer }) => {
    const match = pattern.exec(plain);
    const found = match && answer(match.groups ?? {});
    const sound = found && withoutRefused(found, (write) => isTaken(write, parse, parseType));
    return sound ? [{ tool, answer: hasType ? withoutTypes(sound) : sound }] : [];
  });
}

/** Refuses a text of several meanings that are all in our words. */
export const ambiguous = (text: string, meanings: readonly Meaning[]): FaultError =>
  new FaultError("address_invalid", `${quote(text)} is an address${wordsOf({ either: meanings })}`);

function withoutRefused(answer: Answer, isSound: (write: string) => boolean): Answer | undefined {
  if ("none" in answer) return answer;
  if ("write" in answer) return isSound(answer.write) ? answer : undefined;
  const meanings = answer.either.filter(({ write }) => isSound(write));
  const [first] = meanings;
  if (!first) return undefined;
  return meanings.length === 1 ? { write: first.write } : { either: meanings };
}

function withoutTypes(answer: Answer): Answer {
  if ("none" in answer) return answer;
  if ("write" in answer) return { ...answer, write: splitTyped(answer.write).address };
  return { either: answer.either.map(({ write, ...rest }) => ({ write: splitTyped(write).address, ...rest })) };
}

function isTaken(write: string, parse: Parse<unknown>, parseType: ParseType | undefined): boolean {
  const { address, type } = splitTyped(write);
  const wanted = type === undefined ? undefined : (parseDataType(type) ?? parseType?.(type));
  if (type !== undefined && !wanted) return false;
  try {
    parse(address, wanted);
    return true;
  } catch (error) {
    if (error instanceof FaultError) return false;
    throw error;
  }
}

function wordsOf(answer: Answer): string {
  if ("none" in answer) return `; ${answer.none}`;
  if ("write" in answer) return `; write ${answer.write}${answer.because === undefined ? "" : `; ${answer.because}`}`;
  const written = answer.either.map(({ write, when }) => `${write} ${when}`);
  return ` with ${COUNTS[written.length] ?? written.length} meanings; write ${written.slice(0, -1).join(", ")}, or ${written.at(-1)}`;
}
