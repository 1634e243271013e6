import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { commandLine } from "../../../test/support/command-line.ts";
import { commandIo, runCommand, settingsFile } from "../testing.ts";
import { simulate } from "./simulate.ts";

const TYPES = ["modbus_tcp", "opcua", "s7", "s7plus", "vendor_a", "fins", "vendor_gateway"];
let folder: string;
let config: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), "simulate-"));
  config = settingsFile(folder, {});
});
afterAll(() => rmSync(folder, { recursive: true }));

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

interface Told {
  readonly listening: { readonly port: number };
  readonly name: string;
  readonly read: string;
  readonly add: string;
  readonly import: string;
  readonly notes: readonly string[];
  readonly variables: readonly { readonly name: string; readonly address: string; readonly type: string }[];
}

/** `collector simulate` on a free port, until the test ends. */
async function running(type: string, ...words: string[]): Promise<{ told: Told; out: () => string; stop: () => Promise<number> }> {
  const stop = new AbortController();
  let out = "";
  const faults = words.filter((_, i) => words[i - 1] === "--fault");
  const options = { listen: "127.0.0.1:0", json: true, config, ...(faults.length > 0 && { fault: faults }) };
  const ended = simulate(commandIo({ signal: stop.signal, onOut: (text) => (out += text) }), type, options);
  const end = (): Promise<number> => {
    stop.abort();
    return ended;
  };
  open.push(end);
  await Promise.race([ended, vi.waitFor(() => expect(out).toContain("\n"), { timeout: 60_000 })]);
  if (faults.length > 0) await vi.waitFor(() => expect(out).toContain('{"faults":'), { timeout: 10_000 });
  return { told: JSON.parse(out.split("\n")[0] ?? ""), out: () => out, stop: end };
}

/** Words of a printed command, as a shell takes them, without the program's name. */
const wordsOf = (command: string): string[] =>
  [...command.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? "").slice(1);

describe.each(TYPES)("collector simulate %s", { timeout: 90_000 }, (type) => {
  it("prints the commands that read it, add it and import its variables; each does; values move", async () => {
    const line = await commandLine();
    const { told, stop } = await running(type);
    const read = await runCommand(...wordsOf(told.read), "--json", "--config", config);
    expect([read.code, read.err], told.read).toEqual([0, ""]);
    await line.well(...wordsOf(told.add));
    const csv = await runCommand("simulate", type, "--csv", "--config", config);
    expect([csv.code, csv.err]).toEqual([0, ""]);
    expect(told.import).toBe(`collector simulate ${type} --csv | collector variables import ${told.name} -`);
    const { code, err } = await line.runWith({ stdin: csv.out }, "variables", "import", told.name, "-");
    expect([code, err]).toEqual([0, ""]);
    const stored = JSON.parse(await line.well("variables", "list", told.name, "--json")) as { name: string }[];
    expect(stored.map(({ name }) => name).sort()).toEqual(told.variables.map(({ name }) => name).sort());
    // Every variable can be read, and within a few seconds one of them has another value.
    const all = wordsOf(told.read)
      .slice(0, 2)
      .concat(
        wordsOf(told.add).slice(4),
        told.variables.map(({ address, type: of }) => `${address}:${of}`),
      );
    const values = async () => JSON.parse((await runCommand(...all, "--json", "--config", config)).out).values as { value: unknown }[];
    const first = await values();
    expect(first.filter(({ value }) => value === null)).toEqual([]);
    await vi.waitFor(async () => expect(await values()).not.toEqual(first), { timeout: 15_000, interval: 200 });
    expect(await stop()).toBe(0);
  });
});

describe("collector simulate", () => {
  const fails = async (...words: string[]): Promise<string> => {
    const { code, out, err } = await runCommand("simulate", ...words, "--config", config);
    expect([code, out]).toEqual([2, ""]);
    return err;
  };

  it.each([
    ["silent", "TIMEOUT"],
    ["refuses", "CONNECTION_REFUSED"],
    ["locked", undefined],
    ["wrong-unit", undefined],
  ])("--fault %s is what a collector sees", async (fault, reason) => {
    const { told } = await running("modbus_tcp", "--fault", fault);
    const words = [...wordsOf(told.read), "answer_timeout=300ms", "--timeout", "2s", "--json", "--config", config];
    const { code, out } = await runCommand(...words);
    expect(code).not.toBe(0);
    const answer = JSON.parse(out.split("\n")[0] ?? "");
    if (reason !== undefined) expect(JSON.stringify(answer)).toContain(reason);
    else expect(answer.values.every(({ value }: { value: unknown }) => value === null)).toBe(true);
  });

  it("lists the machines, for people and as JSON, whatever is installed beside", async () => {
    const { out } = await runCommand("simulate");
    expect(out).toMatch(/^TYPE +PORT +NAME +MACHINE\nmodbus_tcp +1502 +press-1 +a press with a Modbus controller\n/);
    expect(out).toContain(
      "  locked (modbus_tcp, s7, vendor_a, fins)\n  wrong-unit (modbus_tcp)\n  deaf (modbus_tcp)\n  hurried (modbus_tcp)\n",
    );
    expect(Math.max(...out.split("\n").map((one) => one.length))).toBeLessThanOrEqual(80);
    const { machines } = JSON.parse((await runCommand("simulate", "--list", "--json")).out);
    expect(machines.map((machine: { type: string }) => machine.type)).toEqual([...TYPES, "odac"]);
    expect(machines.every((machine: { port: number }) => machine.port > 1023)).toBe(true);
  });

  it("shows people the addresses and the commands, and the line that the policy needs", async () => {
    const stop = new AbortController();
    let out = "";
    const io = commandIo({ signal: stop.signal, onOut: (text) => (out += text) });
    const ended = simulate(io, "odac", { listen: "localhost:0", config, fault: ["slow"], after: "1h" });
    await vi.waitFor(() => expect(out).toContain("Collect it:"), { timeout: 10_000 });
    stop.abort();
    expect(await ended).toBe(0);
    expect(out).toMatch(
      /^moulder-10: a moulder with an ODAC in host mode\nlistening on 127\.0\.0\.1:\d+; Ctrl-C ends it\n\nNAME +ADDRESS +TYPE +UNIT\n/,
    );
    expect(out).toContain("odac is read by a profile: put `bindings: {odac: {profile: ");
    expect(out).toContain("put `sources: {loopback: true}` into ");
    expect(out).not.toContain("from now on");
  });

  it("says what is wrong with what was typed", async () => {
    expect(await fails("modbus")).toContain(
      "simulate modbus: expected modbus_tcp, opcua, s7, s7plus, vendor_a, fins, vendor_gateway, odac; do you mean modbus_tcp?",
    );
    expect(await fails("vendor_b")).toContain("its protocol is not public, so there is nothing to simulate");
    expect(await fails("s7", "--fault", "loud")).toContain(
      "--fault loud: expected silent, refuses, slow, drop, locked, wrong-unit, deaf, hurried",
    );
    expect(await fails("s7", "--fault", "wrong-unit")).toContain("--fault wrong-unit: s7 has silent, refuses, slow, drop, locked");
    expect(await fails("s7", "--after", "1s")).toContain("--after needs a --fault");
    expect(await fails("s7", "--after", "soon", "--fault", "slow")).toContain("--after soon: expected a duration such as 30s or 1min");
    expect(await fails("s7", "--listen", "192.0.2.1")).toContain("192.0.2.1 is not among the addresses that policy.yaml opens");
    const { told } = await running("s7");
    expect(await fails("s7", "--listen", `${told.listening.port}`)).toContain("is taken by another program; choose another port");
    writeFileSync(path.join(folder, "policy.yaml"), "listen: [192.0.2.1]\n");
    expect(await fails("s7", "--listen", "192.0.2.1")).toContain("192.0.2.1 is not an address of this machine");
    writeFileSync(path.join(folder, "policy.yaml"), "");
  });

  it("names the package where there are no simulators, and where they are of another version", async () => {
    const io = { ...commandIo({}), addOn: () => undefined };
    await expect(simulate(io, "s7", {})).rejects.toThrow(/not installed: they are in the package collector-simulators \(sudo apt install/);
    await expect(simulate({ ...commandIo({}), version: "9.9.9" }, "s7", {})).rejects.toThrow(
      /the package collector-simulators is of version 0, and the collector 9\.9\.9; install the same of both/,
    );
  });
});
