import type { Page } from "playwright-core";

/** How a window looks at a page. */
export interface Look {
  /** CSS pixels. */
  readonly width: number;
  readonly height: number;
  /** The person prefers dark colours. */
  readonly dark?: boolean;
  /** False: scripts are off. */
  readonly javascript?: boolean;
  /** Sent as a bearer token with each request. */
  readonly token?: string;
}

export const PHONE = { width: 360, height: 740 } as const;
export const DESKTOP = { width: 1280, height: 800 } as const;

/** Phone and desktop, each light and dark. */
export const LOOKS: readonly (Look & { readonly name: string })[] = [
  { name: "phone, light", ...PHONE, dark: false },
  { name: "phone, dark", ...PHONE, dark: true },
  { name: "desktop, light", ...DESKTOP, dark: false },
  { name: "desktop, dark", ...DESKTOP, dark: true },
];

const GO_WITHIN_MS = 30_000;

/** A window with one page, and all that went wrong in it. */
export class Visit {
  /** What the harness has no word for: locators, the keyboard, the address. */
  readonly page: Page;
  #complaints: string[] = [];
  #origin = "";

  constructor(page: Page) {
    this.page = page;
    // Among them whatever the page's Content-Security-Policy refuses.
    page.on("console", (message) => {
      if (message.type() === "error") this.#complain("console", `${message.text()} ${message.location().url}`);
    });
    page.on("pageerror", (error) => this.#complain("script", error.message));
    page.on("dialog", (dialog) => {
      this.#complain("dialog", dialog.message());
      void dialog.dismiss();
    });
    page.on("request", (request) => {
      const { origin, protocol } = new URL(request.url());
      if (/^(https?|wss?):$/.test(protocol) && origin !== this.#origin) this.#complain("foreign request", request.url());
    });
    page.on("response", (response) => {
      if (response.status() >= 400) this.#complain(`answer ${response.status()}`, response.url());
    });
    page.on("requestfailed", (request) => {
      const why = request.failure()?.errorText ?? "";
      // Whoever leaves a page ends its stream of events, and what it still loads.
      if (!why.includes("ERR_ABORTED")) this.#complain(`request failed: ${why}`, request.url());
    });
  }

  /** Each as `kind: what`, oldest first: errors on the console and of scripts, refused content, foreign, failed and refused requests. */
  get complaints(): readonly string[] {
    return this.#complaints;
  }

  /** What was complained of so far has been looked at. */
  forgive(): void {
    this.#complaints = [];
  }

  /** Opens another address; its origin is the page's own from now on. Settles when the document and what it needs are loaded. */
  async go(url: string): Promise<void> {
    this.#origin = new URL(url).origin;
    await this.page.goto(url, { timeout: GO_WITHIN_MS, waitUntil: "load" });
  }

  /** The same page at another size and in other colours, without loading it again. */
  async lookAs({ width, height, dark = false }: Look): Promise<void> {
    await this.page.setViewportSize({ width, height });
    await this.page.emulateMedia({ colorScheme: dark ? "dark" : "light", reducedMotion: "reduce" });
  }

  /** The text that can be seen of what a selector finds, white space folded; "" where it finds nothing. */
  async text(selector: string): Promise<string> {
    const texts = await this.page.locator(selector).allInnerTexts();
    return folded(texts.join(" "));
  }

  /** The name of each element with a role, as a screen reader says it, in the document's order. */
  async named(role: "heading" | "link" | "button" | "table" | "textbox"): Promise<readonly string[]> {
    const tree = await this.page.locator("body").ariaSnapshot();
    return [...tree.matchAll(new RegExp(`^\\s*- '?${role} "((?:[^"\\\\]|\\\\.)*)"`, "gm"))].map(([, name = ""]) => name);
  }

  async press(...keys: readonly string[]): Promise<void> {
    for (const key of keys) await this.page.keyboard.press(key);
  }

  async screenshot(file: string): Promise<void> {
    await this.page.screenshot({ path: file });
  }

  close(): Promise<void> {
    return this.page.context().close();
  }

  #complain(kind: string, what: string): void {
    this.#complaints.push(`${kind}: ${what}`);
  }
}

/** Line breaks and indents as one space. Pure. */
export const folded = (text: string): string => text.replace(/\s+/g, " ").trim();
