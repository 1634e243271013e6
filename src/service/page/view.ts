import { Html, html, withAges } from "./html.ts";

/** A page as it is now: `root` with parts in it, each with an id of its own, which may have parts in them. Ages are not filled in. */
export interface View {
  readonly title: string;
  readonly root: string;
  readonly parts: ReadonlyMap<string, string>;
}

const SLOT = /<!--part:([\w-]+)-->/g;

/** Collects the parts of a page while it is written. */
export class Parts {
  readonly #parts = new Map<string, string>();

  /** The place where the part is in the page. Its outermost element must have this id. */
  add(id: string, part: Html): Html {
    this.#parts.set(id, part.text);
    return new Html(`<!--part:${id}-->`);
  }

  view(title: string, root: Html): View {
    return { title, root: root.text, parts: this.#parts };
  }
}

/** The text with its parts in it, and with the ages of now. Pure. */
export function whole(text: string, parts: View["parts"], nowMs: number): string {
  const filled = (one: string): string => one.replace(SLOT, (_, id: string) => filled(parts.get(id) ?? ""));
  return withAges(filled(text), nowMs);
}

/** What changes of a page reach who looks at it: `main` is all of it. */
export type PartChanges = Readonly<Record<string, string>>;

/**
 * A page over its versions: which of its parts are others since a version, for viewers that saw that one. Versions are above zero.
 */
export class LiveView {
  #view: View;
  /** What it began with: whoever saw an earlier version gets all of it. */
  readonly #first: number;
  #version: number;
  #rootVersion: number;
  readonly #partVersions = new Map<string, number>();

  constructor(view: View, version: number) {
    this.#view = view;
    this.#first = version;
    this.#version = version;
    this.#rootVersion = version;
  }

  get version(): number {
    return this.#version;
  }

  get view(): View {
    return this.#view;
  }

  take(view: View, version: number): void {
    let isOther = false;
    if (view.root !== this.#view.root || view.title !== this.#view.title) {
      this.#rootVersion = version;
      isOther = true;
    }
    for (const [id, part] of view.parts)
      if (part !== this.#view.parts.get(id)) {
        this.#partVersions.set(id, version);
        isOther = true;
      }
    for (const id of this.#partVersions.keys()) if (!view.parts.has(id)) this.#partVersions.delete(id);
    this.#view = view;
    if (isOther) this.#version = version;
  }

  /** What is another since the version that a viewer has seen; undefined: nothing. */
  since(seen: number, nowMs: number): PartChanges | undefined {
    const { root, parts } = this.#view;
    if (seen < this.#first || seen < this.#rootVersion) return { main: whole(root, parts, nowMs) };
    const changed = [...this.#partVersions].flatMap(([id, version]) =>
      version > seen ? [[id, whole(parts.get(id) ?? "", parts, nowMs)] as const] : [],
    );
    return changed.length === 0 ? undefined : Object.fromEntries(changed);
  }
}

export interface ShellOptions {
  readonly view: View;
  /** What the script asks for the changes of; absent: nothing is live. */
  readonly live?: { readonly path: string; readonly version: string } | undefined;
  /** True: somebody has logged in, and may log out. */
  readonly isLoggedIn: boolean;
  readonly nowMs: number;
}

/** The document around a page. Pure. */
export function shell({ view, live, isLoggedIn, nowMs }: ShellOptions): string {
  const main = new Html(whole(view.root, view.parts, nowMs));
  const script = live && html`<script type="module" src="/assets/page.js"></script>`;
  return `<!doctype html>\n${
    html`<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${view.title}</title>
<link rel="icon" href="/assets/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/assets/page.css">
${script}
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header>
<nav aria-label="Pages"><a href="/">Collector</a>${live && html` <a href="/#sinks">Data sinks</a> <a href="/#configuration">Configuration</a>`}</nav>
${live && html`<p id="live" role="status" aria-live="polite">As of ${new Date(nowMs).toISOString().slice(11, 19)} UTC</p>`}
${isLoggedIn && html`<form method="post" action="/logout"><button type="submit">Log out</button></form>`}
</header>
<main id="main" tabindex="-1"${live && html` data-path="${live.path}" data-version="${live.version}"`}>
${main}
</main>
</body>
</html>
`.text
  }`;
}
