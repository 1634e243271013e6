import { networkInterfaces } from "node:os";
import { parseDuration } from "../../base/duration.ts";
import { toJson } from "../../base/json.ts";
import { nearest } from "../../base/nearest.ts";
import { shellWord } from "../../base/shell-word.ts";
import { sleep } from "../../base/timer.ts";
import { endText } from "../../model/address.ts";
import type { Policy } from "../../model/policy.ts";
import { isBoundType } from "../../model/profile-details.ts";
import { type RunningMachine, SIMULATED_FAULTS, type SimulatedFault, type SimulatedMachine } from "../../model/simulation.ts";
import { loadSimulation } from "../add-on.ts";
import { answer } from "../answer.ts";
import { variablesCsv } from "../configuration/variables-csv.ts";
import { type CommandIo, EXIT, type ExitCode, UsageError } from "../io.ts";
import { writeLines } from "../lines.ts";
import { listenFailure, type Place, placeOf, policyFor, readingNotes, stopped } from "../listening.ts";
import { formatTable } from "../table.ts";

/** The command line's options, as typed. */
export interface SimulateOptions {
  readonly config?: string;
  readonly json?: boolean;
  readonly listen?: string;
  readonly list?: boolean;
  readonly csv?: boolean;
  readonly fault?: readonly string[];
  readonly after?: string;
}

/** Addresses that a first look reads. */
const LOOKED_AT = 3;

/** `collector simulate [TYPE]`: runs a simulated machine until the person stops it. Throws UsageError. */
export async function simulate(io: CommandIo, type: string | undefined, options: SimulateOptions): Promise<ExitCode> {
  const { machines } = await loadSimulation(io);
  if (type === undefined || options.list) return list(io, machines, options);
  const machine = chosen(machines, type);
  const faults = faultsOf(machine, options.fault);
  const afterMs = options.after === undefined ? 0 : afterOf(options.after, faults);
  const policy = policyFor(options.config);
  const place = placeOf(options.listen, machine.port, policy);
  // A machine that is there for its list alone takes nobody's port.
  const running = await started(machine, options.csv ? { ...place, port: 0 } : place, faults);
  try {
    if (options.csv) {
      io.stdout.verbatim(
        variablesCsv(running.variables.map((variable) => ({ ...variable, scaling: null, comment: null, status: "ACTIVE" }))),
      );
      return EXIT.good;
    }
    await serve(io, machine, running, { place: { ...place, port: running.port }, policy, faults, afterMs, isJson: options.json === true });
  } finally {
    await running.close();
  }
  return EXIT.good;
}

function list(io: CommandIo, machines: readonly SimulatedMachine[], options: SimulateOptions): ExitCode {
  const rows = machines.map(({ type, port, name, what }) => [type, String(port), name, what]);
  const table = formatTable([["TYPE", "PORT", "NAME", "MACHINE"], ...rows], new Set([1]));
  const faults = SIMULATED_FAULTS.map((fault) => {
    const types = machines.filter((machine) => machine.faults.includes(fault)).map(({ type }) => type);
    return `  ${fault}${types.length === machines.length ? "" : ` (${types.join(", ")})`}`;
  });
  const records = machines.map(({ type, name, what, port, faults }) => ({ type, name, what, port, faults }));
  answer(io, options, { machines: records }, `${[...table, "", "Faults, for --fault:", ...faults].join("\n")}\n`);
  return EXIT.good;
}

function chosen(machines: readonly SimulatedMachine[], type: string): SimulatedMachine {
  const found = machines.find((machine) => machine.type === type);
  if (found) return found;
  const types = machines.map((machine) => machine.type);
  const near = nearest(type, types);
  const why = isBoundType(type)
    ? "its protocol is not public, so there is nothing to simulate; collector replay serves a recording of a device"
    : `expected ${types.join(", ")}${near === undefined ? "" : `; do you mean ${near}?`}`;
  throw new UsageError(`simulate ${type}: ${why}`);
}

function faultsOf(machine: SimulatedMachine, names: readonly string[] = []): readonly SimulatedFault[] {
  return names.map((name) => {
    const fault = SIMULATED_FAULTS.find((one) => one === name);
    if (fault === undefined) throw new UsageError(`--fault ${name}: expected ${SIMULATED_FAULTS.join(", ")}`);
    if (!machine.faults.includes(fault)) throw new UsageError(`--fault ${name}: ${machine.type} has ${machine.faults.join(", ")}`);
    return fault;
  });
}

function afterOf(text: string, faults: readonly SimulatedFault[]): number {
  if (faults.length === 0) throw new UsageError("--after needs a --fault that begins then");
  const ms = parseDuration(text);
  if (ms === undefined) throw new UsageError(`--after ${text}: expected a duration such as 30s or 1min`);
  return ms;
}

async function started(machine: SimulatedMachine, place: Place, faults: readonly SimulatedFault[]): Promise<RunningMachine> {
  try {
    return await machine.start({ ...place, faults });
  } catch (error) {
    throw listenFailure(error, place);
  }
}

interface Serving {
  readonly place: Place;
  readonly policy: Policy;
  readonly faults: readonly SimulatedFault[];
  readonly afterMs: number;
  readonly isJson: boolean;
}

async function serve(io: CommandIo, machine: SimulatedMachine, running: RunningMachine, serving: Serving): Promise<void> {
  const { place, policy, faults, afterMs, isJson } = serving;
  const host = reachedAt(place.host);
  const { read, add, importing } = commandsOf(machine, running, host);
  const notes = [...running.notes, ...readingNotes(policy, { host, port: running.port })];
  const say = (value: object, lines: readonly string[]): void => {
    if (isJson) io.stdout.write(`${toJson(value)}\n`);
    else writeLines(io, lines);
  };
  const { type, name, what } = machine;
  say(
    {
      listening: { address: place.host, port: place.port },
      type,
      name,
      what,
      variables: running.variables,
      read,
      add,
      import: importing,
      notes,
    },
    [
      `${name}: ${what}`,
      `listening on ${endText({ address: place.host, port: place.port })}; Ctrl-C ends it`,
      "",
      ...formatTable([
        ["NAME", "ADDRESS", "TYPE", "UNIT"],
        ...running.variables.map((variable) => [variable.name, variable.address, variable.type, variable.unit ?? ""]),
      ]),
      "",
      "Look at it, in another terminal:",
      `  ${read}`,
      "Collect it:",
      `  ${add}`,
      `  ${importing}`,
      ...notes,
    ],
  );
  if (faults.length > 0) {
    await sleep(afterMs, io.signal);
    if (io.signal.aborted) return;
    await running.plant(faults);
    say({ faults }, [`from now on: ${faults.join(", ")}`]);
  }
  await stopped(io.signal);
}

/** The place where a collector reaches what listens on every address of this machine. */
function reachedAt(host: string): string {
  if (host !== "0.0.0.0" && host !== "::") return host;
  const family = host === "::" ? "IPv6" : "IPv4";
  const own = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  return own.find((address) => !address.internal && address.family === family)?.address ?? (host === "::" ? "::1" : "127.0.0.1");
}

function commandsOf({ type, name }: SimulatedMachine, running: RunningMachine, host: string) {
  const words = running.words(host).join(" ");
  const some = running.variables.slice(0, LOOKED_AT).map((variable) => shellWord(`${variable.address}:${variable.type}`, "ADDRESS"));
  return {
    read: `collector read ${type} ${words} ${some.join(" ")}`,
    add: `collector source add ${name} ${type} ${words}`,
    importing: `collector simulate ${type} --csv | collector variables import ${name} -`,
  };
}
