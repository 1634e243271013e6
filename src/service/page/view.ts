import { toJson } from "../../base/json.ts";
import { escapeControls, withoutCredentials } from "../../base/plain-text.ts";

/** A page of the console as it is now: its parts by id, each as JSON text. */
export interface View {
  readonly title: string;
  readonly parts: ReadonlyMap<string, string>;
}

/** Texts of parts that were written last: what has not changed is the same object. */
const WRITTEN = new WeakMap<object, string>();

/** A part as JSON text: nothing in a text from outside steers the page or is a password of a URL. Pure. */
export function partText(part: unknown): string {
  const isKept = typeof part === "object" && part !== null;
  const known = isKept ? WRITTEN.get(part) : undefined;
  if (known !== undefined) return known;
  const text = toJson(part, (value) => (typeof value === "string" ? escapeControls(withoutCredentials(value)) : value));
  if (isKept) WRITTEN.set(part, text);
  return text;
}

/** A page over its versions: which of its parts are others since a version, for viewers that saw that one. Versions are above zero. */
export class LiveView {
  #view: View;
  /** Its first version: a viewer of an earlier one gets all parts. */
  readonly #first: number;
  #version: number;
  readonly #partVersions = new Map<string, number>();

  constructor(view: View, version: number) {
    this.#view = view;
    this.#first = version;
    this.#version = version;
  }

  get version(): number {
    return this.#version;
  }

  get view(): View {
    return this.#view;
  }

  take(view: View, version: number): void {
    let isOther = view.title !== this.#view.title;
    for (const [id, part] of view.parts)
      if (part !== this.#view.parts.get(id)) {
        this.#partVersions.set(id, version);
        isOther = true;
      }
    for (const id of this.#partVersions.keys()) if (!view.parts.has(id)) this.#partVersions.delete(id);
    this.#view = view;
    if (isOther) this.#version = version;
  }

  /** The parts that are others since the version that a viewer has seen, as the text of a JSON object; undefined: none. */
  since(seen: number): string | undefined {
    const { parts } = this.#view;
    const isNew = seen < this.#first;
    const changed = isNew
      ? [...parts]
      : [...this.#partVersions].flatMap(([id, at]) => (at > seen ? [[id, parts.get(id) ?? "null"] as const] : []));
    return changed.length === 0 && !isNew ? undefined : `{${changed.map(([id, text]) => `${JSON.stringify(id)}:${text}`).join(",")}}`;
  }
}
