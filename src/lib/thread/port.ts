/** What both ends of a channel use of it: a MessagePort of a thread, or the channel of a process of its own. */
export interface Port {
  postMessage(message: unknown): void;
  // biome-ignore lint/suspicious/noExplicitAny: as of a MessagePort; each end knows the messages of the other
  on(event: "message", listener: (message: any) => void): unknown;
  /** What was posted before still goes out. */
  close(): void;
}
