import type { TagEntry, TagListFormat, Wanted } from "./format.ts";
import { isTiaType, notForTia, type TiaTag, tiaCells } from "./tia-tag.ts";
import { type Attributes, piecesOf, readXml, type XmlHandler } from "./xml.ts";

/** Characters in which the first element is. */
const HEAD = 8192;
const ROOT = /<(?:Tagtables?[\s>]|SW\.Tags\.PlcTagTable[\s>])/;

/**
 * PLC tags of TIA Portal as XML: what the editor of a tag table exports (`<Tagtable><Tag type='Bool' addr='%I0.0'>name</Tag>`), and what
 * Openness exports (`SW.Tags.PlcTagTable`). Both shapes come from exports in public repositories.
 */
export const tiaXml: TagListFormat = {
  program: "TIA Portal",
  what: "PLC tags (XML)",
  read: ({ text }, wanted) => (ROOT.test(text.slice(0, HEAD)) ? entries(text, wanted) : undefined),
};

async function* entries(text: string, { type }: Wanted): AsyncGenerator<TagEntry> {
  if (!isTiaType(type)) {
    yield notForTia(type);
    return;
  }
  const reader = new TagReader();
  const fault = await readXml(piecesOf(text), reader);
  if (fault) {
    yield { refusal: fault.fault };
    return;
  }
  for (const { line, ...tag } of reader.tags) {
    const cells = tiaCells({ ...tag, name: tag.name.trim(), comment: tag.comment.trim() }, type);
    yield typeof cells === "string" ? { place: line, name: tag.name, problem: cells } : { place: line, tag: cells };
  }
  if (reader.isCut) yield { place: "the end of the file", problem: `has more than ${MAX_TAGS} tags; those after them are not read` };
}

/** One more than a list takes. */
const MAX_TAGS = 100_001;
/** UTF-16 units of a text that are kept. */
const MAX_TEXT = 4000;

type Made = { -readonly [K in keyof TiaTag]: TiaTag[K] } & { readonly line: number };
/** Fields of a tag that are texts, by the elements of Openness. */
const FIELDS: ReadonlyMap<string, "name" | "type" | "address"> = new Map([
  ["Name", "name"],
  ["DataTypeName", "type"],
  ["LogicalAddress", "address"],
]);

class TagReader implements XmlHandler {
  readonly tags: Made[] = [];
  isCut = false;
  readonly #way: string[] = [];
  #tag: Made | undefined;
  /** Takes the text of the element that is open. */
  #take: ((part: string) => void) | undefined;

  open(name: string, attributes: Attributes, line: number): "stop" | undefined {
    this.#way.push(name);
    this.#take = undefined;
    if (name === "Tag" || name === "SW.Tags.PlcTag") {
      if (this.tags.length >= MAX_TAGS) {
        this.isCut = true;
        return "stop";
      }
      const attribute = (key: string): string => attributes.get(key) ?? "";
      const isAccessible = !/^false$/i.test(attribute("hmiAccessible"));
      this.#tag = { name: "", type: attribute("type"), address: attribute("addr"), comment: attribute("remark"), isAccessible, line };
      this.tags.push(this.#tag);
      if (name === "Tag") this.#take = this.#into("name");
      return undefined;
    }
    const way = this.#way.slice(this.#way.lastIndexOf("SW.Tags.PlcTag") + 1).join("/");
    const field = way === `AttributeList/${name}` ? FIELDS.get(name) : undefined;
    if (field !== undefined) this.#take = this.#into(field);
    else if (way === "AttributeList/ExternalAccessible") this.#take = this.#accessible();
    // The first text that is not empty, of whatever language.
    else if (name === "Text" && this.#tag?.comment.trim() === "") this.#take = this.#into("comment");
    return undefined;
  }

  text(part: string): void {
    this.#take?.(part);
  }

  close(name: string): void {
    this.#way.pop();
    this.#take = undefined;
    if (name === "Tag" || name === "SW.Tags.PlcTag") this.#tag = undefined;
  }

  #into(field: "name" | "type" | "address" | "comment"): (part: string) => void {
    const tag = this.#tag;
    return (part) => {
      if (tag && tag[field].length < MAX_TEXT) tag[field] += part;
    };
  }

  #accessible(): (part: string) => void {
    const tag = this.#tag;
    return (part) => {
      if (tag && /^\s*false\s*$/i.test(part)) tag.isAccessible = false;
    };
  }
}
