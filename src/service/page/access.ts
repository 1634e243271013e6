import { createHash, randomBytes, timingSafeEqual, X509Certificate } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { hostname } from "node:os";
import { readBoundedFile } from "../../lib/bounded-file.ts";
import { literalAddress } from "../../model/address.ts";
import { messageOf } from "../../model/failure.ts";

/** Who may see the page: by the name they ask for it with, and by the token. */

const MAX_TOKEN_BYTES = 4096;
const MIN_TOKEN_CHARACTERS = 16;
const SESSION_MS = 12 * 3_600_000;
const MAX_SESSIONS = 100;
export const COOKIE = "collector_page";

/** The token of a file: its first line. Throws an Error that names the setting, never with what the file holds. */
export function readToken(file: string): string {
  let token: string;
  try {
    token = new TextDecoder().decode(readBoundedFile(file, MAX_TOKEN_BYTES)).split(/\r?\n/, 1)[0]?.trim() ?? "";
  } catch (error) {
    throw new Error(`page.token_file: ${messageOf(error)}`, { cause: error });
  }
  if (token.length < MIN_TOKEN_CHARACTERS)
    throw new Error(
      `page.token_file: the first line of ${file} has fewer than ${MIN_TOKEN_CHARACTERS} characters; \`openssl rand -hex 32\` makes a token`,
    );
  return token;
}

/**
 * True: a request names this machine: a page of another name that a browser resolves to this address (DNS rebinding) could read what is
 * answered. An address is never another's name. `cert`: of the server, as PEM; the names in it are this machine's.
 */
export function isOwnName(host: string | undefined, cert?: string): boolean {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]/\s]+))(?::\d{1,5})?$/.exec(host ?? "");
  const name = (match?.[1] ?? match?.[2])?.toLowerCase();
  if (name === undefined) return false;
  if (literalAddress(name) !== undefined || name === "localhost" || name === hostname().toLowerCase()) return true;
  return cert !== undefined && new X509Certificate(cert).checkHost(name) !== undefined;
}

const digest = (text: string): Buffer => createHash("sha256").update(text).digest();

interface Session {
  readonly untilMs: number;
  /** Of the token that it was opened with: another token ends it. */
  readonly token: Buffer;
}

/** The token and who has shown it. Sessions are kept in memory alone: who has none logs in. */
export class TokenGate {
  readonly #tokenFile: string | undefined;
  /** Monotonic ms. */
  readonly #now: () => number;
  /** By the digest of their key. */
  readonly #sessions = new Map<string, Session>();

  /** `tokenFile` undefined: everybody may enter. */
  constructor(tokenFile: string | undefined, now: () => number = () => performance.now()) {
    this.#tokenFile = tokenFile;
    this.#now = now;
  }

  get isOpen(): boolean {
    return this.#tokenFile === undefined;
  }

  /** By a session's cookie or a bearer token. A token that cannot be read admits nobody. */
  admits({ cookie, authorization }: Pick<IncomingHttpHeaders, "cookie" | "authorization">): boolean {
    if (this.isOpen) return true;
    const bearer = /^Bearer +(\S{1,4096})$/i.exec(authorization ?? "")?.[1];
    return (bearer !== undefined && this.isToken(bearer)) || this.#hasSession(cookie);
  }

  isToken(given: string): boolean {
    const token = this.#token();
    return token !== undefined && timingSafeEqual(digest(given), token);
  }

  /** Opens a session; gives the key that its cookie holds. */
  open(): string {
    const key = randomBytes(32).toString("base64url");
    const token = this.#token();
    if (token) this.#sessions.set(idOf(key), { untilMs: this.#now() + SESSION_MS, token });
    for (const oldest of [...this.#sessions.keys()].slice(0, Math.max(0, this.#sessions.size - MAX_SESSIONS)))
      this.#sessions.delete(oldest);
    return key;
  }

  /** Ends the session of a cookie. */
  close(cookie: string | undefined): void {
    this.#sessions.delete(idOf(keyIn(cookie)));
  }

  #hasSession(cookie: string | undefined): boolean {
    const id = idOf(keyIn(cookie));
    const session = this.#sessions.get(id);
    if (!session) return false;
    const token = this.#token();
    if (token && this.#now() < session.untilMs && timingSafeEqual(session.token, token)) return true;
    this.#sessions.delete(id);
    return false;
  }

  #token(): Buffer | undefined {
    try {
      return this.#tokenFile === undefined ? undefined : digest(readToken(this.#tokenFile));
    } catch {
      return undefined;
    }
  }
}

const idOf = (key: string): string => digest(key).toString("base64");

function keyIn(cookie: string | undefined): string {
  const pair = (cookie ?? "")
    .split(";")
    .map((part) => part.trim())
    .find((part) => part.startsWith(`${COOKIE}=`));
  return pair?.slice(COOKIE.length + 1) ?? "";
}
