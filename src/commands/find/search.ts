import { sleep } from "../../base/timer.ts";
import { silentLog } from "../../model/context.ts";
import type { ReasonType } from "../../model/reason.ts";
import { greetPort } from "../hello/greet.ts";
import { HELLOS, type Hello } from "../hello/hellos.ts";
import type { Recognised } from "../hello/recognised.ts";

/** Devices that are asked at once. */
const AT_ONCE = 16;
/** Between two connections to one device. */
const PACE_MS = 1000;
const TIMEOUTS = { nameMs: 1000, connectMs: 1000, answerMs: 1000 } as const;

/** Failures of an address where no device is: its other ports are left alone. */
const ABSENT: ReadonlySet<ReasonType> = new Set(["HOST_DOWN", "NO_ROUTE_TO_HOST", "NETWORK_UNREACHABLE"]);

/** Ports that are tried where none are given, in the order of the table. */
export const USUAL_PORTS: readonly number[] = [...new Set(HELLOS.flatMap(({ port }) => port ?? []))];

/** A port that takes connections. */
export interface FoundPort {
  readonly address: string;
  readonly port: number;
  /** Absent: it answers nothing that is known. */
  readonly found?: Recognised;
}

export interface SearchInput {
  readonly addresses: readonly string[];
  readonly ports: readonly number[];
  readonly signal: AbortSignal;
  /** Called for each port that takes connections, as it is found. */
  tell(found: FoundPort): void;
  /** Called when all ports of an address are looked at. */
  looked(): void;
  /** Between two connections to one device; absent: a second. */
  readonly paceMs?: number;
}

/** Looks at each port of each address once, a bounded number of addresses at a time, until all are looked at or the signal aborts. Never throws. */
export async function search(input: SearchInput): Promise<void> {
  const left = input.addresses.values();
  const work = async (): Promise<void> => {
    for (const address of left) {
      if (input.signal.aborted) return;
      await searchAddress(address, input);
      input.looked();
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}

async function searchAddress(address: string, { ports, signal, tell, paceMs = PACE_MS }: SearchInput): Promise<void> {
  let nextMs = performance.now();
  const pace = async (): Promise<void> => {
    const waitMs = nextMs - performance.now();
    if (waitMs > 0) await sleep(waitMs, signal);
    nextMs = performance.now() + paceMs;
  };
  for (const port of ports) {
    const ctx = { signal, log: silentLog, timeouts: TIMEOUTS };
    const { found, isOpen, failure } = await greetPort({ host: address, port, transport: "tcp" }, hellosAt(port), ctx, pace);
    const reason = failure?.reason.type;
    if (isOpen && (found || !signal.aborted)) tell({ address, port, ...(found && { found }) });
    if (signal.aborted || (reason !== undefined && ABSENT.has(reason))) return;
  }
}

/** Those of the protocol that is usual at the port; at any other port all. Pure. */
export function hellosAt(port: number): readonly Hello[] {
  const usual = HELLOS.filter((hello) => hello.port === port);
  return usual.length > 0 ? usual : HELLOS;
}
