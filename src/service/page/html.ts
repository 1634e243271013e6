import { escapeControls, withoutCredentials } from "../../base/plain-text.ts";
import { forWords } from "../words/service-words.ts";

/** A piece of HTML that is safe to put into a page: made by the template `html` alone, which escapes every text. */
export class Html {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

type Piece = Html | string | number | null | undefined | false | readonly Piece[];

const ENTITIES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

/** A text from outside as a text or an attribute in quotes: nothing in it is markup, steers the page, or is a password of a URL. Pure. */
export const escapeHtml = (text: string): string =>
  escapeControls(withoutCredentials(text)).replace(/[&<>"']/g, (char) => ENTITIES[char] ?? char);

/** A template: html`<p>${text}</p>`. Texts and numbers are escaped, pieces and lists of them are taken as they are, nothing else leaves a trace. Pure. */
export const html = (parts: TemplateStringsArray, ...pieces: readonly Piece[]): Html =>
  new Html(parts.reduce((all, part, i) => `${all}${textOf(pieces[i - 1])}${part}`));

function textOf(piece: Piece): string {
  if (piece === null || piece === undefined || piece === false) return "";
  if (piece instanceof Html) return piece.text;
  if (typeof piece === "object") return piece.map(textOf).join("");
  return escapeHtml(String(piece));
}

/** A sentence, with what is between backticks as a command. Pure. */
export const sentence = (text: string): Html =>
  html`${text.split(/`([^`\n]+)`/).map((part, i) => (i % 2 === 1 ? html`<code>${part}</code>` : html`${part}`))}`;

/** Paragraphs of sentences. Pure. */
export const paragraphs = (texts: readonly string[]): Html => html`${texts.map((text) => html`<p>${sentence(text)}</p>`)}`;

const ISO = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/;

/** A time; anything that is no ISO time as it is. Pure. */
export const timeOf = (iso: string): Html =>
  ISO.test(iso) ? html`<time datetime="${iso}">${iso.slice(0, 19).replace("T", " ")} UTC</time>` : html`${iso}`;

/** How long ago a time is: filled in by `withAges` when it is sent, and kept by the page's script. Pure. */
export const ageOf = (iso: string): Html => (ISO.test(iso) ? html`<time data-age datetime="${iso}"></time>` : html`?`);

const AGE = /<time data-age datetime="([^"]{20,30})"><\/time>/g;

/** Fills in the ages as they are at `nowMs`, epoch ms: what has not changed but for its age is the same piece. Pure. */
export const withAges = (text: string, nowMs: number): string =>
  text.replace(AGE, (_, iso: string) => `<time data-age datetime="${iso}">${escapeHtml(forWords(iso, nowMs))}</time>`);
