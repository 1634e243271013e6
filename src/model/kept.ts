/**
 * What a driver keeps of one data source over restarts of the collector. Values are plain data that JSON can say, a few KiB each. One that
 * cannot be kept is lost with the process, which the log says.
 */
export interface Kept {
  readonly values: Readonly<Record<string, unknown>>;
  set(key: string, value: unknown): void;
}
