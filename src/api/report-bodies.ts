import type { ReadoutStatusReport } from "../model/resources.ts";

/** Below the body limit of our own server, with room for the longest report. */
const MAX_REPORT_BYTES = 512 * 1024;

/** Arrays of reports as JSON, each within what a server takes as one body. */
export function* reportBodies(reports: ReadoutStatusReport): Generator<string> {
  let items: string[] = [];
  let bytes = 0;
  for (const report of reports) {
    const item = JSON.stringify(report);
    const size = Buffer.byteLength(item) + 1;
    if (items.length > 0 && bytes + size > MAX_REPORT_BYTES) {
      yield `[${items.join(",")}]`;
      items = [];
      bytes = 0;
    }
    items.push(item);
    bytes += size;
  }
  if (items.length > 0) yield `[${items.join(",")}]`;
}
