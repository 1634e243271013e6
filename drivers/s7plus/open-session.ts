import type { TLSSocket } from "node:tls";
import { ReasonError } from "../../src/model/reason.ts";
import type { DriverContext } from "../driver.ts";
import type { Purpose } from "../lib/exchange.ts";
import { type Help, SilentHelp } from "../lib/silent-help.ts";
import { bytesOf, type CreatedSession, numberOf, parseAttribute, parseCreated, parseItems } from "./answers.ts";
import { Malformed } from "./cursor.ts";
import type { PlusLink, Take } from "./link.ts";
import { CHALLENGE_BYTES, legacyAnswer, loginKindOf, newAnswer } from "./login.ts";
import { ARRAY, WIRE } from "./pvalue.ts";
import { ATTRIBUTE, createSession, type Draft, getAttribute, readLimits, setAttribute, setUpSession } from "./requests.ts";
import { codeOf, isError, returnWords, s7plusError, sessionRefusal } from "./return-values.ts";

/** Variables in one request, where the CPU does not say. */
export const DEFAULT_ITEMS = 20;
/** More than fit in a request. */
const MOST_ITEMS = 1000;
/** Protection level: nothing is to be had without a log-in. */
const NO_ACCESS = 4;
/** All is. */
const FULL_ACCESS = 1;
/** What TLS exports for the log-in. */
const EXPORT = { bytes: 32, label: "EXPERIMENTAL_OMS" } as const;

/** A log-in that worked; kept over sessions in the memory of the device. */
type KnownLogin = "legacy" | "new";
const KEY = "login";

export const LIMITS: Help = {
  kind: "limits",
  words: `the PLC gives no answer to the question how many variables one request may have: the collector asks for ${DEFAULT_ITEMS} at once`,
};

/** Who logs in, where the CPU asks for it. */
export interface Credentials {
  /** "": the password of an access level. */
  readonly user: string;
  /** Undefined: none is configured. */
  readonly password: string | undefined;
}

export interface OpenedSession {
  readonly id: number;
  /** What the CPU says it is. */
  readonly device: string | undefined;
  /** Variables in one request that it takes; undefined: it gives no answer to that. */
  readonly maxItems: number | undefined;
}

/**
 * Makes a session over a link and logs in, where that is needed. Throws ReasonError: S7PLUS_ERROR (AUTHENTICATION: the password is wrong,
 * missing or not sufficient), or what the link throws.
 */
export function openSession(link: PlusLink, socket: TLSSocket, credentials: Credentials, ctx: DriverContext): Promise<OpenedSession> {
  return new Opening(link, socket, credentials, ctx).run();
}

/** Variables that the CPU takes in one request: few where it does not say; undefined: it gives no answer. Throws ReasonError: the session is lost. */
export async function readLimit(link: PlusLink, session: number, help: SilentHelp, ctx: DriverContext): Promise<number | undefined> {
  const parse = (cursor: Parameters<Take<unknown>>[1]): number => {
    const [item] = parseItems(cursor, 1);
    const limit = (item && "value" in item && numberOf(item.value)) || 0;
    return limit >= 1 ? Math.min(limit, MOST_ITEMS) : DEFAULT_ITEMS;
  };
  return help.ask(
    LIMITS,
    async () => (await ask(link, ctx, "its limits", readLimits(session), parse, "help").catch(unlessRefused)) ?? DEFAULT_ITEMS,
  );
}

/** The protection level that holds for the session now; undefined: the CPU does not say. Throws ReasonError: the session is lost. */
function readLevel(link: PlusLink, session: number, ctx: DriverContext): Promise<number | undefined> {
  const draft = getAttribute(session, ATTRIBUTE.protectionLevel);
  return ask(link, ctx, "its protection level", draft, (cursor) => numberOf(parseAttribute(cursor, [0, WIRE.udint]))).catch(unlessRefused);
}

/**
 * Throws ReasonError where the CPU gives the session no access any more: it may give some after another log-in. For who was denied all that
 * one request asked for.
 */
export async function checkRights(link: PlusLink, session: number, ctx: DriverContext): Promise<void> {
  if ((await readLevel(link, session, ctx)) !== NO_ACCESS) return;
  throw s7plusError("AUTHENTICATION", "the PLC has taken the session's rights away (protection level 4, return value -100)", {
    sessionLost: true,
  });
}

/** Throws ReasonError: the CPU refuses it. */
function ask<T>(
  link: PlusLink,
  ctx: DriverContext,
  what: string,
  draft: Draft,
  parse: (cursor: Parameters<Take<T>>[1]) => T,
  purpose?: Purpose,
): Promise<T> {
  return link.ask(
    ctx,
    () => what,
    draft,
    (value, cursor) => {
      if (isError(value)) throw sessionRefusal(value, what);
      return parse(cursor);
    },
    purpose,
  );
}

class Opening {
  readonly #link: PlusLink;
  readonly #socket: TLSSocket;
  readonly #credentials: Credentials;
  readonly #ctx: DriverContext;

  constructor(link: PlusLink, socket: TLSSocket, credentials: Credentials, ctx: DriverContext) {
    this.#link = link;
    this.#socket = socket;
    this.#credentials = credentials;
    this.#ctx = ctx;
  }

  async run(): Promise<OpenedSession> {
    const created = await this.#ask("a session", createSession(), parseCreated);
    const { ids, versionValue, device } = created;
    const [id] = ids;
    if (id === undefined || !versionValue) throw noSession(created);
    this.#link.begin(id);
    await this.#ask("the set-up of the session", setUpSession(id, versionValue), () => undefined);
    this.#link.setUp();
    const maxItems = await readLimit(this.#link, id, new SilentHelp(this.#ctx.device), this.#ctx);
    this.#ctx.loggingIn?.();
    await this.#logIn(id, device);
    return { id, device, maxItems };
  }

  /** Throws ReasonError: the CPU refuses it. */
  #ask<T>(what: string, draft: Draft, parse: (cursor: Parameters<Take<T>>[1]) => T): Promise<T> {
    return ask(this.#link, this.#ctx, what, draft, parse);
  }

  async #logIn(session: number, device: string | undefined): Promise<void> {
    const level = await readLevel(this.#link, session, this.#ctx);
    if (level !== undefined && level <= FULL_ACCESS) return;
    const { password } = this.#credentials;
    if (password === undefined) {
      if (level === NO_ACCESS)
        throw s7plusError(
          "AUTHENTICATION",
          "the PLC gives no access without a password (protection level 4); set the password of the data source, or give HMI access to anonymous users in the project",
        );
      return;
    }
    await this.#answerChallenge(session, device, password);
    const reached = await readLevel(this.#link, session, this.#ctx);
    if (reached === NO_ACCESS)
      throw s7plusError(
        "AUTHENTICATION",
        "the PLC took the password and still gives no access (protection level 4); use the password of a level with HMI access or more",
      );
  }

  async #answerChallenge(session: number, device: string | undefined, password: string): Promise<void> {
    const said = loginKindOf(device);
    if (said === "unsupported")
      throw s7plusError("UNKNOWN", `the PLC (${device}) has a firmware whose log-in is not known here; update it, or read the CPU with s7`);
    const worked = this.#ctx.device?.get(KEY) as KnownLogin | undefined;
    const first = worked ?? (said === "legacy" ? "legacy" : "new");
    const second = first === "legacy" ? "new" : "legacy";
    const used = await this.#by(first, session, password).catch(async (error: unknown) => {
      // A legacy answer names no user: the password of a user would count as a wrong one of a level.
      if (!(error instanceof UnknownLogin) || (second === "legacy" && this.#credentials.user !== "")) throw error;
      return this.#by(second, session, password).catch((other: unknown) => {
        throw other instanceof UnknownLogin ? error : other;
      });
    });
    if (used !== worked) this.#ctx.device?.set(KEY, used);
  }

  async #by(kind: KnownLogin, session: number, password: string): Promise<KnownLogin> {
    await (kind === "legacy" ? this.#legacy(session, password) : this.#new(session, password));
    return kind;
  }

  async #legacy(session: number, password: string): Promise<void> {
    const challenge = await this.#challenge(session);
    await this.#answer(session, ATTRIBUTE.legacyAnswer, legacyAnswer(password, challenge));
  }

  async #new(session: number, password: string): Promise<void> {
    const challenge = await this.#challenge(session);
    const exported = this.#socket.exportKeyingMaterial(EXPORT.bytes, EXPORT.label, Buffer.alloc(0));
    await this.#answer(session, ATTRIBUTE.legitimate, newAnswer(this.#credentials.user, password, challenge, exported));
  }

  #challenge(session: number): Promise<Buffer> {
    return this.#ask("the challenge of its log-in", getAttribute(session, ATTRIBUTE.challenge), (cursor) => {
      const challenge = bytesOf(parseAttribute(cursor, [ARRAY, WIRE.usint]));
      if (challenge?.length !== CHALLENGE_BYTES) throw new Malformed(`a challenge of ${challenge?.length ?? 0} bytes`);
      return challenge;
    });
  }

  #answer(session: number, attribute: number, answer: Buffer): Promise<void> {
    return this.#link.ask<void>(
      this.#ctx,
      () => "the log-in",
      setAttribute(session, attribute, answer),
      (value) => {
        if (UNKNOWN_LOGIN.has(codeOf(value))) throw new UnknownLogin(loginRefusal(value, this.#credentials.user));
        if (isError(value) || NOT_LOGGED_IN.has(codeOf(value))) throw loginRefusal(value, this.#credentials.user);
      },
    );
  }
}

/** Delegitimated, and level disabled: no errors by their sign. */
const NOT_LOGGED_IN: ReadonlySet<number> = new Set([22, 38]);
/** Invalid attribute, unknown request, not implemented: this log-in is none of the CPU's. */
const UNKNOWN_LOGIN: ReadonlySet<number> = new Set([-32, -95, -119]);

/** CPUs are said to delay or to block log-ins after several that failed. */
const REFUSED_PAUSE_MS = 5000;

/** The CPU does not know this kind of log-in. */
class UnknownLogin extends ReasonError {
  constructor({ reason, message }: ReasonError) {
    super(reason, message);
  }
}

function loginRefusal(value: bigint, user: string): ReasonError {
  const who = user === "" ? "the password" : `the password of the user ${JSON.stringify(user)}`;
  const hint =
    user === ""
      ? "is it right, and does the project use access levels with passwords? With user management (TIA Portal V19, firmware 3.1) set the local setting user too"
      : "are both right, and has the user the right to read?";
  return s7plusError("AUTHENTICATION", `the PLC refused ${who}: ${returnWords(value)}; ${hint}`, { retryAfterMs: REFUSED_PAUSE_MS });
}

const noSession = ({ ids }: CreatedSession): ReasonError =>
  s7plusError(
    "UNKNOWN",
    ids.length === 0 ? "the PLC made no session, and named no reason" : "the PLC made a session without a version, which cannot be set up",
  );

/** Undefined: the CPU refused what is not needed. Throws what has ended the session. */
function unlessRefused(error: unknown): undefined {
  if (error instanceof ReasonError && error.reason.type === "S7PLUS_ERROR" && !error.sessionLost) return undefined;
  throw error;
}
