import type { Loss, Place, Start, StoredBatch } from "../buffer/buffer.ts";
import { type BufferFileReader, openReader } from "../buffer/reader.ts";
import { createRecentLayouts } from "../buffer/recent-layouts.ts";
import type { Log } from "../model/context.ts";
import type { Layout } from "../model/layout.ts";

export interface BufferViewOptions {
  readonly log: Log;
  /** An equal layout that is in memory already, or the one given. */
  readonly shared: (layout: Layout) => Layout;
  /** The file is left: nothing is known of its rows. */
  readonly closed: () => void;
  /** The file is about to be opened. */
  readonly opening: () => void;
  /** May throw what the reader throws: the file is opened again then. */
  readonly opened: (file: BufferFileReader) => void;
  /** Rows cannot be read: the store is to check the file. */
  readonly unreadable: () => void;
}

const REOPEN_MS = 1000;
/** Layouts of each source in memory; rows in the file may have more, which are read again. */
const LAYOUTS_OF_A_SOURCE = 8;

/** The file of the buffer as the delivery reads it, and the layouts of its rows. Opens the file again after errors. */
export class BufferView {
  readonly #options: BufferViewOptions;
  #file: string | undefined;
  #reader: BufferFileReader | undefined;
  #epoch = "";
  /** By rising ids, those that the file had when it was opened. */
  #starts: readonly Start[] = [];
  /** The store's own. */
  #start: Start | undefined;
  /** By id; those of unstored rows have negative ids, are in no file, and come once. */
  #layouts = createRecentLayouts<number, Layout>(LAYOUTS_OF_A_SOURCE);
  #isUnreadableLogged = false;
  #reopenTimer: NodeJS.Timeout | undefined;
  #mayReopen = true;

  constructor(options: BufferViewOptions) {
    this.#options = options;
  }

  /** Reads this file from now on. */
  use(file: string): void {
    this.#file = file;
    this.#start = undefined;
    this.#layouts = createRecentLayouts(LAYOUTS_OF_A_SOURCE);
    clearTimeout(this.#reopenTimer);
    this.#open();
  }

  /** Does `work` with the open file; without one it does nothing. Where the file cannot be read it is opened again a little later. */
  access(work: (file: BufferFileReader) => void): void {
    if (!this.#reader) return;
    try {
      work(this.#reader);
    } catch (error) {
      this.#options.log.warn({ err: error }, "the buffer cannot be read; it is opened again");
      this.#reopenLater();
    }
  }

  /** The place where a sink stands; undefined: the file does not have it, is closed, or cannot be read. */
  place(sink: string): Place | undefined {
    try {
      return this.#reader?.place(sink);
    } catch (error) {
      this.#options.log.debug({ err: error }, "the buffer's account cannot be read");
      this.#options.unreadable();
      return undefined;
    }
  }

  /** Rows with from <= id < to, of up to `maxBytes` of payload but at least one. Throws if the file cannot be read. */
  read(from: number, to: number, maxBytes: number): readonly StoredBatch[] {
    if (!this.#reader) throw new Error("the buffer is not open");
    const { log, unreadable } = this.#options;
    try {
      const rows = this.#reader.read(from, to, maxBytes);
      if (this.#isUnreadableLogged) log.info({}, "the buffer can be read again");
      this.#isUnreadableLogged = false;
      return rows;
    } catch (error) {
      if (!this.#isUnreadableLogged)
        log.warn({ err: error }, "the buffer cannot be read: its rows are not delivered until it can; trying again");
      this.#isUnreadableLogged = true;
      unreadable();
      throw error;
    }
  }

  /** The losses of a sink; none while the file is closed. Throws if the file cannot be read. */
  losses(sink: string): readonly Loss[] {
    return this.#reader?.losses(sink) ?? [];
  }

  /** Distinguishes lives of the file; "" before the first opening. */
  epoch(): string {
    return this.#epoch;
  }

  /** Since which start of a store batches have this id: its name. */
  startOf(id: number): string {
    if (this.#start && id >= this.#start.from) return this.#start.name;
    return this.#starts.findLast(({ from }) => id >= from)?.name ?? this.#epoch;
  }

  setStart(start: Start | undefined): void {
    this.#start = start;
  }

  /** Undefined: the file does not have it. Throws if the file cannot be read. */
  layout(id: number): Layout | undefined {
    const known = this.#layouts.get(id);
    if (known) return known;
    const read = this.#reader?.layout(id);
    if (!read) return undefined;
    const layout = this.#options.shared(read);
    this.#remember(id, layout);
    return layout;
  }

  addLayout(id: number, layout: Layout): void {
    this.#remember(id, this.#options.shared(layout));
  }

  /** Exchanges layouts for equal ones that are in memory already. */
  shareLayouts(): void {
    this.#rebuildLayouts((_id, layout) => this.#options.shared(layout));
  }

  stopReopening(): void {
    this.#mayReopen = false;
    clearTimeout(this.#reopenTimer);
  }

  close(): void {
    this.#reader?.close();
    this.#reader = undefined;
  }

  /** Unstored rows keep their layouts: no file has them. */
  #open(): void {
    const { log, opening, opened } = this.#options;
    this.#leave();
    opening();
    this.#rebuildLayouts((id, layout) => (id < 0 ? layout : undefined));
    if (this.#file === undefined) return;
    try {
      this.#reader = openReader(this.#file);
    } catch (error) {
      if (!this.#isUnreadableLogged) log.warn({ err: error, file: this.#file }, "the buffer cannot be opened; it is tried again");
      this.#isUnreadableLogged = true;
      this.#reopenLater();
      return;
    }
    this.#isUnreadableLogged = false;
    this.access((file) => {
      this.#epoch = file.epoch();
      this.#starts = file.starts();
      opened(file);
    });
  }

  #reopenLater(): void {
    this.#leave();
    clearTimeout(this.#reopenTimer);
    if (this.#mayReopen) this.#reopenTimer = setTimeout(() => this.#open(), REOPEN_MS);
  }

  #leave(): void {
    this.close();
    this.#options.closed();
  }

  #remember(id: number, layout: Layout): void {
    this.#layouts.add(id, `${id < 0} ${layout.source.uuid}`, layout);
  }

  /** Keeps of each layout what `change` makes of it; undefined: nothing. */
  #rebuildLayouts(change: (id: number, layout: Layout) => Layout | undefined): void {
    const before = this.#layouts.entries();
    this.#layouts = createRecentLayouts(LAYOUTS_OF_A_SOURCE);
    for (const [id, layout] of before) {
      const now = change(id, layout);
      if (now) this.#remember(id, now);
    }
  }
}
