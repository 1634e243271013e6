import { createYielder } from "../base/timer.ts";
import { messageOf } from "../model/failure.ts";
import type { Fault } from "./zip.ts";

/** Bounds of an XML text: characters of a name, an attribute or a comment come from the parser (64 Ki). */
export const XML_LIMITS = { depth: 64, attributes: 256, elements: 20_000_000, seconds: 120 } as const;

/** The attributes of an element, by name. Names of elements and attributes have no prefix. */
export type Attributes = ReadonlyMap<string, string>;

export interface XmlHandler {
  /** `line` counts from 1. `stop` ends the reading without a fault. */
  open(name: string, attributes: Attributes, line: number): "stop" | undefined;
  /** A part of the text within the innermost element; a long text comes in parts. */
  text(part: string): void;
  close(name: string): void;
}

export interface XmlOptions {
  readonly limits?: { readonly depth: number; readonly attributes: number; readonly elements: number; readonly seconds: number };
  /** Milliseconds of a clock that only rises. */
  readonly now?: () => number;
}

/** Ends the parser from within: with a fault, or without one. */
class Ended extends Error {
  readonly fault: string | undefined;
  constructor(fault: string | undefined) {
    super(fault);
    this.fault = fault;
  }
}

/**
 * Reads an XML text, given in pieces, element by element. A document type is refused, and with it every entity of the file's own. Gives the
 * fault where the text is not well-formed or beyond the limits. Throws what the handler throws.
 */
export async function readXml(
  pieces: Iterable<string>,
  handler: XmlHandler,
  { limits = XML_LIMITS, now = performance.now.bind(performance) }: XmlOptions = {},
): Promise<Fault | undefined> {
  const { default: sax } = await import("sax");
  const until = now() + limits.seconds * 1000;
  const yieldToEventLoop = createYielder();
  // Without strictEntities, sax takes the entities of HTML for XML's.
  const options = { position: true, strictEntities: true };
  const parser = sax.parser(true, options);
  let depth = 0;
  let elements = 0;
  let attributes = new Map<string, string>();
  let handlerError: unknown;
  const end = (fault: string): never => {
    throw new Ended(`line ${parser.line + 1}: ${fault}`);
  };
  const hand = (call: () => unknown): void => {
    let said: unknown;
    try {
      said = call();
    } catch (error) {
      handlerError = error;
      throw error;
    }
    if (said === "stop") throw new Ended(undefined);
  };
  parser.onerror = (error) => end(messageOf(error).split("\n")[0] ?? "");
  parser.ondoctype = () => end("it has a document type (DOCTYPE), which no export has and which is refused");
  parser.onattribute = ({ name, value }) => {
    if (attributes.size === limits.attributes) end(`an element has more than ${limits.attributes} attributes`);
    attributes.set(localName(name), value);
  };
  parser.onopentag = ({ name }) => {
    if (++depth > limits.depth) end(`elements lie in each other more than ${limits.depth} deep`);
    if (++elements > limits.elements) end(`it has more than ${limits.elements} elements`);
    const own = attributes;
    attributes = new Map();
    hand(() => handler.open(localName(name), own, parser.line + 1));
  };
  const text = (part: string): void => {
    if (depth > 0) hand(() => handler.text(part));
  };
  parser.ontext = text;
  parser.oncdata = text;
  parser.onclosetag = (name) => {
    depth--;
    hand(() => handler.close(localName(name)));
  };
  try {
    for (const piece of pieces) {
      if (now() > until) end(`reading took longer than ${limits.seconds} s`);
      parser.write(piece);
      await yieldToEventLoop();
    }
    parser.close();
    return elements === 0 ? { fault: "it has no element" } : undefined;
  } catch (error) {
    if (handlerError !== undefined) throw handlerError;
    if (!(error instanceof Ended)) return { fault: `it is not well-formed XML: ${messageOf(error).split("\n")[0]}` };
    return error.fault === undefined ? undefined : { fault: `it is not the XML of an export: ${error.fault}` };
  }
}

const localName = (name: string): string => name.slice(name.indexOf(":") + 1);

const PIECE = 64 * 1024;

/** A text that is whole in pieces, between which others have their turn. Pure. */
export function* piecesOf(text: string): Generator<string> {
  for (let from = 0; from < text.length; from += PIECE) yield text.slice(from, from + PIECE);
}
