import { randomInt } from "node:crypto";
import type { DriverContext } from "../driver.ts";
import { STATUS } from "./cip.ts";
import type { CipLink, OpenConnection } from "./link.ts";
import { MAX_SMALL_BYTES, type OpenWish, openRequest, parseOpened, type Route, routeMs, routeWords } from "./manager.ts";
import { connectionWords, isNoWay, routeFailure } from "./refusals.ts";

/** What a Forward Open that is not large asks for: modules of all ages take it. */
export const SMALL_BYTES = 504;

/** An open connection, and how long its messages may be. */
export interface Opened {
  readonly open: OpenConnection;
  readonly sizeBytes: number;
}

interface Refusal {
  readonly status: number;
  readonly extended: number | undefined;
  /** The size that the target would take. */
  readonly mostBytes: number | undefined;
}

interface Size {
  readonly bytes: number;
  readonly isLarge: boolean;
}

const IN_USE = 0x0100;
/** A second word may say which size would do. */
const WRONG_SIZE_NAMED = 0x0109;
const WRONG_SIZE: ReadonlySet<number | undefined> = new Set([WRONG_SIZE_NAMED, 0x0127, 0x0128]);
/** The fewest bytes that are worth a connection. */
const LEAST_BYTES = 64;
/** Sizes that are tried. */
const MAX_TRIES = 5;

/** One number for all connections of this process, beside their serials. */
const ORIGINATOR = randomInt(1, 0xffff_ffff);

/**
 * Opens a connection to the message router of the controller: a large one, and smaller ones where it does not take that. A string: why it has
 * none for us; messages go without one then. `object`: what it is opened to in place of the message router. Throws ReasonError: there is no
 * way to the controller.
 */
export async function openConnection(
  link: CipLink,
  route: Route,
  sizes: readonly number[],
  ctx: DriverContext,
  object?: Buffer,
): Promise<Opened | string> {
  const queue = sizes.map((bytes): Size => ({ bytes, isLarge: bytes > MAX_SMALL_BYTES }));
  let hasNewSerial = false;
  let refused = "";
  for (let tries = 0, size = queue.shift(); size && tries < MAX_TRIES; tries++) {
    const wish: OpenWish = {
      triple: { serial: randomInt(1, 0x1_0000), originator: ORIGINATOR },
      ownId: randomInt(1, 0xffff_ffff),
      sizeBytes: size.bytes,
      isLarge: size.isLarge,
      route,
      object,
      timeoutMs: routeMs(ctx.timeouts.answerMs),
    };
    const answer = await tryOpen(link, wish, ctx);
    if (typeof answer === "number")
      return {
        open: { triple: wish.triple, ownId: wish.ownId, targetId: answer, route, ...(object && { object }) },
        sizeBytes: size.bytes,
      };
    const { status, extended, mostBytes } = answer;
    if (isNoWay(status, extended)) throw routeFailure(status, extended, `no way to the controller (${routeWords(route)})`);
    refused = connectionWords(status, extended);
    const isSerialUsed: boolean = status === STATUS.connectionFailure && extended === IN_USE && !hasNewSerial;
    const isSize = status === STATUS.notSupported || (status === STATUS.connectionFailure && WRONG_SIZE.has(extended));
    hasNewSerial ||= isSerialUsed;
    if (isSerialUsed) continue;
    if (!isSize) break;
    const asked = size.bytes;
    if (extended === WRONG_SIZE_NAMED && mostBytes !== undefined && mostBytes >= LEAST_BYTES && mostBytes < asked)
      size = { bytes: mostBytes, isLarge: mostBytes > MAX_SMALL_BYTES };
    else size = queue.shift();
  }
  return refused;
}

function tryOpen(link: CipLink, wish: OpenWish, ctx: DriverContext): Promise<number | Refusal> {
  return link.ask<number | Refusal>(
    ctx,
    () => `the opening of a connection of ${wish.sizeBytes} bytes`,
    link.unconnectedPacket(openRequest(wish)),
    (reply, done) => {
      const { bytes, at, end, status, extended, second } = reply;
      if (status !== STATUS.ok) {
        done({ status, extended, mostBytes: second });
        return undefined;
      }
      const targetId = parseOpened(bytes, at, end, wish);
      if (typeof targetId === "string") return targetId;
      done(targetId);
      return undefined;
    },
    "help",
  );
}
