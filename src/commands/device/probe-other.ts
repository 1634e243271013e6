import type { DriverContext } from "../../../drivers/driver.ts";
import type { ReasonError, ReasonType } from "../../model/reason.ts";
import { greetPort } from "../hello/greet.ts";
import { HELLOS } from "../hello/hellos.ts";
import { recognisedWords } from "../hello/recognised.ts";
import { sourceCommand } from "../hello/source-command.ts";
import type { ProbeTarget } from "./probe-walk.ts";

/** Longest wait for a connection, and for an answer to a hello. */
const EACH_MS = 1000;
/** Failures that say nothing of the protocol. */
const UNREAD: ReadonlySet<ReasonType> = new Set(["TIMEOUT", "CONNECTION_CLOSED", "CONNECTION_RESET"]);

/** Another program at the port of a device. */
export interface OtherProtocol {
  readonly detail: string;
  /** A sentence; absent: the usual advice stands. */
  readonly nextStep?: string;
}

/** True: nothing came that the driver can read, so the program at the port may speak another protocol. `frames`: that came. Pure. */
export const isUnread = ({ reason, condition }: ReasonError, frames: number): boolean =>
  condition === "protocol_violation" || (frames === 0 && UNREAD.has(reason.type));

/**
 * Says the hellos of the other protocols to a device whose answer cannot be read, one after the other over connections of their own, until
 * one is recognised; undefined: none is. The connection of the walk has to be closed. Never throws.
 */
export async function askOtherProtocols(
  { driver, details, settings }: ProbeTarget,
  { tap: _, ...context }: DriverContext,
): Promise<OtherProtocol | undefined> {
  const { host, port, transport } = driver.endpoint(details, settings);
  if (transport !== "tcp" || driver.listensAt?.(details, settings) !== undefined) return undefined;
  const { timeouts } = context;
  const [connectMs, answerMs] = [Math.min(timeouts.connectMs, EACH_MS), Math.min(timeouts.answerMs, EACH_MS)];
  const ctx = { ...context, timeouts: { ...timeouts, connectMs, answerMs } };
  const others = HELLOS.filter(({ type }) => type !== driver.type);
  const { found, isClosedEachTime } = await greetPort({ host, port, transport }, others, ctx);
  if (isClosedEachTime) return { detail: "it closes each connection without a word, whatever it is sent, as MQTT brokers do" };
  if (!found || found.type === driver.type) return undefined;
  const own = HELLOS.find(({ type }) => type === driver.type)?.name.replace(/,.*/, "") ?? driver.type;
  const command = sourceCommand(found, host, port);
  const nextStep = command
    ? `Give the data source the type that the device has: \`${command}\`.`
    : `Correct host and port: a program that speaks ${found.protocol} is there.`;
  return { detail: `port ${port} of ${host} speaks ${recognisedWords(found)}, not ${own}`, nextStep };
}
