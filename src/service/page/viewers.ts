import type { ServerResponse } from "node:http";
import { type LiveView, partText } from "./view.ts";

/** People who look at once. */
export const MAX_VIEWERS = 32;
/**
 * Bytes that wait for a viewer; beyond it nothing more is sent, and the next it gets is the newest state. The listener ends one that takes nothing at
 * all, and sees slow progress too.
 */
const MAX_WAITING_BYTES = 64 * 1024;
/** True: a viewer may still look is seen this often. */
const ADMITTED_MS = 10_000;
/** An event that says nothing keeps proxies from ending a quiet connection, and shows the browser that it is not dead. */
const QUIET_MS = 15_000;

/** Leads a browser that may not look to the log-in. */
export const LOGIN_EVENT = "event: login\ndata: {}\n\n";

/** Somebody whose browser shows a page. */
export interface NewViewer {
  readonly response: ServerResponse;
  /** Which page: its key among the pages that are watched. */
  readonly page: string;
  /** The version of it that was sent last. */
  readonly seen: number;
  /** True: the session or the token still opens the page. */
  readonly isAdmitted: () => boolean;
}

interface Viewer extends Omit<NewViewer, "seen"> {
  seen: number;
  /** Monotonic ms. */
  sentAt: number;
  /** When it was seen last whether it may look; monotonic ms. */
  admittedAt: number;
}

/** Whose pages are live, within a bound: what a slow one has missed is not kept for it. */
export class Viewers {
  readonly #viewers = new Set<Viewer>();
  /** Monotonic ms. */
  readonly #now: () => number;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  get isFull(): boolean {
    return this.#viewers.size >= MAX_VIEWERS;
  }

  get count(): number {
    return this.#viewers.size;
  }

  /** Keys of the pages that somebody looks at. */
  get pages(): ReadonlySet<string> {
    return new Set([...this.#viewers].map(({ page }) => page));
  }

  add(one: NewViewer): void {
    const { response } = one;
    if (response.destroyed) return;
    const viewer: Viewer = { ...one, sentAt: this.#now(), admittedAt: this.#now() };
    this.#viewers.add(viewer);
    response.once("close", () => this.#viewers.delete(viewer));
    response.on("error", () => this.#viewers.delete(viewer));
    response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
    response.write("retry: 2000\n\n");
  }

  /** Sends each what its page has that it has not seen. `epoch`: what versions begin with. */
  send(viewOf: (page: string) => LiveView | undefined, epoch: string, nowMs: number): void {
    for (const viewer of this.#viewers) {
      const live = viewOf(viewer.page);
      if (!live || !this.#mayLook(viewer) || viewer.response.writableLength > MAX_WAITING_BYTES) continue;
      const parts = live.since(viewer.seen);
      if (parts !== undefined) {
        const data = `{"title":${partText(live.view.title)},"at":"${new Date(nowMs).toISOString()}","parts":${parts}}`;
        this.#write(viewer, `id: ${epoch}.${live.version}\nevent: parts\ndata: ${data}\n\n`);
        viewer.seen = live.version;
      } else if (this.#now() - viewer.sentAt >= QUIET_MS) this.#write(viewer, "event: quiet\ndata: {}\n\n");
    }
  }

  close(): void {
    for (const { response } of this.#viewers) response.destroy();
    this.#viewers.clear();
  }

  #write(viewer: Viewer, text: string): void {
    viewer.response.write(text);
    viewer.sentAt = this.#now();
  }

  /** Who may not look any more is told so, and sent away. */
  #mayLook(viewer: Viewer): boolean {
    const now = this.#now();
    if (now - viewer.admittedAt < ADMITTED_MS) return true;
    viewer.admittedAt = now;
    if (viewer.isAdmitted()) return true;
    this.#viewers.delete(viewer);
    viewer.response.end(LOGIN_EVENT);
    return false;
  }
}
