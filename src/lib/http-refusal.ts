import { STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";

/** What is said to a client instead of an answer. */
export interface Refusal {
  readonly status: number;
  /** For people. */
  readonly detail: string;
  /** Seconds after which it may ask again. */
  readonly retryAfterS?: number;
  /** Lines of the header, each with its end. */
  readonly more?: string;
}

/** How long a connection that is given up is still read. */
const LINGER_MS = 500;
/** Of this thread; beyond them one is closed at once. */
const MAX_LINGERING = 256;
let lingering = 0;

/** Says why in plain HTTP, and ends the connection. */
export function refuse(socket: Duplex, { status, detail, retryAfterS, more = "" }: Refusal): void {
  if (!socket.writable || lingering >= MAX_LINGERING) return void socket.destroy();
  const body = JSON.stringify({ detail });
  const retry = retryAfterS === undefined ? "" : `Retry-After: ${retryAfterS}\r\n`;
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\nConnection: close\r\n${retry}${more}Content-Type: application/json; charset=utf-8\r\n`;
  socket.end(`${head}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  // Closed at once, with bytes that nobody read, the connection would be reset and the answer lost on its way.
  socket.resume();
  lingering++;
  const linger = setTimeout(() => socket.destroy(), LINGER_MS).unref();
  socket.once("close", () => {
    clearTimeout(linger);
    lingering--;
  });
}
