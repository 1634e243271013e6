import { findRefusal } from "../../lib/policy.ts";
import { policyOf } from "../device/device.ts";
import { hostPort } from "../device/values.ts";
import { recognisedWords } from "../hello/recognised.ts";
import { sourceCommand } from "../hello/source-command.ts";
import { type CommandIo, EXIT, type ExitCode, UsageError } from "../io.ts";
import { writeJson, writeLines } from "../lines.ts";
import { addressesIn, portsIn } from "./network.ts";
import { type FoundPort, search, USUAL_PORTS } from "./search.ts";

/** The command line's options, as typed. */
export interface FindOptions {
  readonly json?: boolean;
  readonly config?: string;
  readonly ports?: string;
}

/** `collector find NETWORK`: the controllers that answer there, and how each is added. Throws UsageError. */
export async function find(network: string, options: FindOptions, io: CommandIo): Promise<ExitCode> {
  const addresses = orUsage(addressesIn(network));
  const ports = options.ports === undefined ? USUAL_PORTS : orUsage(portsIn(options.ports));
  const { policy } = policyOf(options.config);
  const refusal = findRefusal(policy, network, addresses);
  if (refusal !== undefined) throw new UsageError(refusal);
  const all: FoundPort[] = [];
  let looked = 0;
  const progress = progressOn(io, addresses.length);
  await search({
    addresses,
    ports,
    signal: io.signal,
    tell(found) {
      all.push(found);
      progress.clear();
      if (!options.json) writeLines(io, linesOf(found));
    },
    looked: () => progress.tell(++looked),
  });
  progress.clear();
  const isWhole = !io.signal.aborted;
  if (options.json) writeJson(io, toObject(network, { ports, looked, isWhole, total: addresses.length }, all));
  else writeLines(io, [endLine(network, all.length, { looked, isWhole, total: addresses.length })]);
  return !isWhole && all.length === 0 ? EXIT.interrupted : EXIT.good;
}

function orUsage<T>(given: T | string): T {
  if (typeof given === "string") throw new UsageError(given);
  return given;
}

interface Extent {
  readonly looked: number;
  readonly total: number;
  readonly isWhole: boolean;
}

/** A port, and the command that adds it. Pure. */
function linesOf({ address, port, found }: FoundPort): readonly string[] {
  const command = found && sourceCommand(found, address, port);
  const words = found ? recognisedWords(found) : "takes connections, and answers nothing that is known";
  return [`${hostPort(address, port)}  ${words}`, ...(command === undefined ? [] : [`  ${command}`])];
}

function endLine(network: string, found: number, { looked, total, isWhole }: Extent): string {
  const extent = isWhole ? `${total} addresses` : `stopped after ${looked} of ${total} addresses`;
  return `${network}: ${found} ${found === 1 ? "port answers" : "ports answer"}; ${extent}.`;
}

function toObject(network: string, extent: Extent & { readonly ports: readonly number[] }, all: readonly FoundPort[]): object {
  const { ports, looked, total, isWhole } = extent;
  return {
    ok: isWhole,
    network,
    ports,
    addresses: total,
    looked_at: looked,
    found: all.map(({ address, port, found }) => {
      const { protocol = null, type = null, maker = null, model = null, firmware = null } = found ?? {};
      return { address, port, protocol, type, maker, model, firmware, add: (found && sourceCommand(found, address, port)) ?? null };
    }),
  };
}

/** A line that counts, on a terminal. */
function progressOn({ stderr }: CommandIo, total: number) {
  let isShown = false;
  return {
    tell(looked: number): void {
      if (!stderr.isTTY) return;
      isShown = true;
      stderr.verbatim(`\r${looked} of ${total} addresses looked at … \x1b[K`);
    },
    clear(): void {
      if (isShown) stderr.verbatim("\r\x1b[K");
      isShown = false;
    },
  };
}
