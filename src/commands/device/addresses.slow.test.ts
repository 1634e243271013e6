import fc from "fast-check";
import { expect, test } from "vitest";
import { commandLine } from "../../../test/support/command-line.ts";
import { unboundWords } from "../../model/binding.ts";
import { addressCheck } from "./addresses.ts";

const MODBUS = { uuid: "0ebb773e-4e24-4aa6-ab3c-b17e68a3d9dc", name: "press-1", type: "modbus_tcp" };
const OPCUA = { ...MODBUS, type: "opcua" };

test.each([
  [MODBUS, "holding:0", "uint16", undefined],
  [MODBUS, "3/input:7.2", null, undefined],
  [MODBUS, "holdng:0", null, /^address: "holdng:0".*holding/],
  [MODBUS, "holding:65535", "uint32", /^address: "holding:65535".*65536, the last one is 65535/],
  [MODBUS, "coil:0", "string(4)", /^address: .*coil/],
  [OPCUA, "ns=2;s=Press.Temperature", null, undefined],
  [OPCUA, "holding:0", null, /^address: "holding:0" is not an address: expected a node id/],
] as const)("%o: %s as %s", async (source, address, type, said) => {
  const { problemOf, note } = await addressCheck(source, { state_dir: "/none", bindings: {}, sources: {} });
  expect(note).toBeUndefined();
  const problem = problemOf({ address, type });
  if (said) expect(problem).toMatch(said);
  else expect(problem).toBeUndefined();
});

test("the settings of the source count, those of every source among them left aside", async () => {
  const wide = { address: "holding:0", type: "float32[10]" };
  const check = (options: Readonly<Record<string, unknown>>) =>
    addressCheck(MODBUS, { state_dir: "/none", bindings: {}, sources: { "press-1": options } });
  expect((await check({ connect_timeout: "2s" })).problemOf(wide)).toBeUndefined();
  expect((await check({ max_registers: 10 })).problemOf(wide)).toMatch(/takes 20 registers, one read holds 10/);
});

test("where nobody can tell, every address passes, and the reason is reported", async () => {
  const broken = await addressCheck(MODBUS, { state_dir: "/none", bindings: {}, sources: { "press-1": { max_registers: "many" } } });
  const unknown = await addressCheck({ ...MODBUS, type: "none_such" }, { state_dir: "/none", bindings: {}, sources: {} });
  const inherited = await addressCheck({ ...MODBUS, type: "toString" }, { state_dir: "/none", bindings: {}, sources: {} });
  for (const { problemOf } of [broken, unknown, inherited]) expect(problemOf({ address: "anything", type: null })).toBeUndefined();
  expect(broken.note).toMatch(/^the addresses are not checked: sources.press-1 in the settings: max_registers: /);
  expect(unknown.note).toBe("the addresses are not checked: this collector has no driver for none_such");
  expect(inherited.note).toContain("no driver for toString");
});

test("whatever is given as an address, the check ends with a sentence or nothing", async () => {
  const checks = await Promise.all(
    [MODBUS, OPCUA].map((source) => addressCheck(source, { state_dir: "/none", bindings: {}, sources: {} })),
  );
  fc.assert(
    fc.property(fc.string(), fc.constantFrom(null, "uint16", "string(3)", "bool"), (address, type) => {
      for (const { problemOf } of checks) expect(problemOf({ address, type }) ?? "address: ").toMatch(/^address: /);
    }),
  );
});

test("a variable whose address the driver cannot read is refused before it is sent, by add, set and import", async () => {
  const { run, well, write } = await commandLine();
  await well("source", "add", "press-1", "modbus_tcp", "host=h");
  await well("variables", "add", "press-1", "good", "holding:0:uint16", "--comment", "kept");
  const list = () => well("variables", "list", "press-1", "--json");
  const before = await list();
  for (const [words, said] of [
    [["add", "press-1", "x", "holdng:0:uint16"], /^collector: address: "holdng:0".*holding/],
    [["add", "press-1", "x", "ns=2;s=a"], /^collector: address: "ns=2;s=a"/],
    [["add", "press-1", "x", "holding:65535", "--type", "uint32"], /the last one is 65535/],
    [["set", "press-1", "good", "--address", "holding:70000"], /^collector: address: "holding:70000"/],
    // The type is new, the address as it was.
    [["set", "press-1", "good", "--type", "float32[100]"], /float32\[100\] takes 200 registers/],
  ] as const) {
    const { code, out, err } = await run("variables", ...words);
    expect([code, out, err], words.join(" ")).toEqual([2, "", expect.stringMatching(said)]);
  }
  expect(await list()).toBe(before);

  const csv = write("v.csv", "name;address;type\na;holding:1;uint16\nb;holdng:2;uint16\nc;coil:3;\nb;holding:4;\n");
  const partly = await run("variables", "import", "press-1", csv, "--replace");
  expect([partly.code, partly.out]).toEqual([1, "press-1: 3 created, 0 changed, 0 deleted, 0 unchanged\n"]);
  expect(partly.err).toMatch(/^collector: .*v\.csv:3: address: "holdng:2".*\ncollector: nothing was deleted/);
  expect(JSON.parse(await list()).map(({ name }: { readonly name: string }) => name)).toEqual(["good", "a", "c", "b"]);

  const yaml = write("v.yaml", "- {name: d, address: 'holdng:1'}\n- {name: e, address: 'coil:70000'}\n");
  const none = await run("variables", "import", "press-1", yaml);
  expect([none.code, none.out]).toEqual([2, ""]);
  expect(none.err).toMatch(/v\.yaml:1: address: "holdng:1".*\n.*v\.yaml:2: address: "coil:70000"/);
});

test("variables of a type that nothing is bound to here are sent as they are, with a note", async () => {
  const { run, well, write } = await commandLine();
  await well("source", "add", "plc", "odac", "host=h");
  const note = `the addresses are not checked: ${unboundWords("odac")}`;
  const csv = write("v.csv", "name;address\na;DB1.X0.0\n");
  expect(await run("variables", "import", "plc", csv)).toEqual({
    code: 0,
    out: "plc: 1 created, 0 changed, 0 deleted, 0 unchanged\n",
    err: `collector: ${note}\n`,
  });
  expect(await run("variables", "add", "plc", "b", "DB1.W2")).toEqual({ code: 0, out: "plc/b: created\n", err: `collector: ${note}\n` });
  expect(JSON.parse((await run("variables", "add", "plc", "c", "DB1.W4", "--json")).out)).toMatchObject({ name: "c", warnings: [note] });
  // Nothing of an address is given: nothing is to be checked.
  expect((await run("variables", "set", "plc", "a", "--unit", "bar")).err).toBe("");
});

test("a variable that was wrong before can still be described and switched off", async () => {
  const { api, run, well } = await commandLine();
  await well("source", "add", "press-1", "modbus_tcp", "host=h");
  const [{ uuid }] = JSON.parse(await well("source", "list", "--json"));
  await api.send("POST", "/ext/v1/variables", { data_source: uuid, name: "old", address: "holdng:0" });
  expect(await run("variables", "set", "press-1", "old", "--status", "INACTIVE", "--comment", "wrong")).toMatchObject({ code: 0, err: "" });
});
