import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { DRIVERS } from "../../../drivers/index.ts";
import { commandLine } from "../../../test/support/command-line.ts";

const ALL: readonly (readonly [type: string, ...words: string[]])[] = [
  ["odac", "host=h"],
  ["plastcontrol", "host=h", "port=1"],
  ["vendor_b", "host=h", "machine=C5", "initialization_mode=Default"],
];
const NOT_READ = ALL.filter(([type]) => !Object.hasOwn(DRIVERS, type));

test("what is typed for a data source and cannot be meant is answered with what was meant", async () => {
  const { api, run, well } = await commandLine();
  await well("source", "add", "taken", "modbus_tcp", "host=10.0.0.5");
  const refused: readonly (readonly [words: readonly string[], says: string])[] = [
    [["p", "modbus_tcp", "host=10.0.0.5:502"], "write 10.0.0.5, and 502 as port"],
    [["p", "modbus_tcp", "host=192.168.1.300"], "300 is too large for an IPv4 address"],
    [["p", "modbus_tcp", "host=h", "port=99999"], "port: expected at most 65535\n"],
    [["p", "modbus_tcp", "host=h", "port=1.5"], "port: expected a whole number, not a broken number\n"],
    [["p", "vendor_b", "host=h", "machine=C9", "initialization_mode=Default"], "machine: expected C4, C5 or C6\n"],
    [["p", "vendor_gateway", "host=h", "port=1", "protocol=X"], "protocol_details.protocol: expected OPC_DA or PVI\n"],
    [["p", "siemens", "host=h"], "siemens is not a type of data source; did you mean s7plus or s7?"],
    [["p", "S7-300", "host=h"], "did you mean s7?"],
    [["p", "EtherNet/IP", "host=h"], "did you mean vendor_a?"],
    [["p", "opc.ua", "host=h"], "did you mean opcua?"],
    [["p", "modbsu_tcp", "host=h"], "did you mean modbus_tcp?"],
    [["p", "mqtt", "host=h"], "mqtt is a type of data sink: type collector sink add NAME mqtt key=value…"],
    [["p", "zzz", "host=h"], "zzz is not a type of data source; there are: "],
    [["p", "modbus_tcp", "host=h", "order=CDBA"], "order: expected ABCD, BADC, CDAB or DCBA"],
    [["p", "modbus_tcp", "host=h", "unit=300", "answer_timeout=soon"], "answer_timeout: expected a duration such as"],
    [["p", "modbus_tcp", "host=h", "ordre=CDAB"], "ordre: there is no such key; did you mean order?"],
    [["p", "modbus_tcp", "host=h", "password_file=pw"], "password_file: there is no such key"],
    [["p", "modbus_tcp", "host=h", "interval=5s"], "interval: is an option of this verb: --interval 5s"],
    [["p", "modbus_tcp", "host=h", "readout_limit=5", "unit=3"], "readout_limit: is an option of this verb: --limit 5"],
    [["p", "modbus_tcp", "host=h", "hots=x"], "hots: there is no such key; did you mean host?"],
    [["taken", "modbus_tcp", "host=h"], "there is a data source taken already; collector source set taken changes it"],
    // Before a password is asked for.
    [["taken", "opcua", "endpoint_url=opc.tcp://h:4840", "username=a"], "there is a data source taken already"],
    [["x".repeat(201), "modbus_tcp", "host=h"], "name: expected at most 200 characters"],
    [["", "modbus_tcp", "host=h"], "name: expected at least 1 character"],
  ];
  for (const [words, says] of refused) {
    const { code, out, err } = await run("source", "add", ...words);
    expect([code, out, err], words.join(" ")).toEqual([2, "", expect.stringContaining(says)]);
    expect(err).not.toMatch(/Too (big|small)|Invalid|received|expected string/);
  }
  expect((await api.send("GET", "/v2/data-sources")).body["data"]).toHaveLength(1);
  // What the API knows and nobody here can read is stored, and said.
  for (const [type, ...words] of NOT_READ) {
    const stored = await run("source", "add", `a ${type}`, type, ...words);
    const note = `this collector has no driver for ${type} yet: the data source is stored`;
    expect([stored.code, stored.out, stored.err]).toEqual([0, expect.stringContaining(`Note: ${note}`), ""]);
    const json = await run("source", "add", `b ${type}`, type, ...words, "--json");
    expect([JSON.parse(json.out), json.err]).toMatchObject([{ action: "created", warnings: [expect.stringContaining(note)] }, ""]);
  }
});

test("a type that there is not is no wrong address", async () => {
  const { run } = await commandLine();
  const mistakes: readonly (readonly [words: readonly string[], says: string])[] = [
    [["s7", "host=127.0.0.1", "DB1.DBD0:REAL64"], '"REAL64" is not a type of Siemens S7'],
    [["modbus_tcp", "host=127.0.0.1", "holding:0:FLAOT"], '"FLAOT" is not a type of Modbus TCP'],
    [["fins", "host=127.0.0.1", "local_address=0.0.0", "remote_address=0.10.0", "D100:RAEL"], '"RAEL" is not a type of'],
    [["s7", "host=127.0.0.1", "DX1.DBD0:REAL"], "is not an address"],
    [["modbus_tcp", "host=127.0.0.1", "hold:0"], "is not an address"],
  ];
  for (const [words, says] of mistakes) {
    const { code, err } = await run("read", ...words);
    expect([code, err], words.join(" ")).toEqual([2, expect.stringContaining(says)]);
  }
});

test("source rm says how many variables go, and the commands that it names bring all of it back", async () => {
  const { well, write, folder } = await commandLine();
  await well("source", "add", "hall 3", "modbus_tcp", "host=10.0.0.5", "port=1502", "--interval", "5s", "--note", "left");
  await well(
    "variables",
    "import",
    "hall 3",
    write("v.csv", "name;address;type;unit;factor\na;holding:0;float32;°C;0,1\nb;holding:2;int16;;\n"),
  );
  const before = [await well("source", "export"), await well("variables", "export", "hall 3")];
  const removed = await well("source", "rm", "hall 3");
  expect(removed).toMatch(
    /^hall 3: deleted with its 2 variables\nTo bring it back, type:\n {2}collector source import \S+\.yaml\n {2}collector variables import 'hall 3' \S+\.csv\n$/,
  );
  const [source = "", variables = ""] = [/source import (\S+)/, /'hall 3' (\S+)/].map((pattern) => pattern.exec(removed)?.[1]);
  await well("source", "import", source);
  await well("variables", "import", "hall 3", variables);
  expect([await well("source", "export"), await well("variables", "export", "hall 3")]).toEqual(before);
  const again = JSON.parse(await well("source", "rm", "hall 3", "--json"));
  expect(again).toMatchObject({ action: "deleted", name: "hall 3", variables: 2 });
  expect(existsSync(again.kept.variables)).toBe(true);
  await well("source", "add", "empty", "modbus_tcp", "host=h");
  expect(await well("source", "rm", "empty")).toContain("empty: deleted; it had no variables\n");
  expect(readdirSync(join(folder, "removed-sources")).length).toBe(5);
  expect(readFileSync(source, "utf8")).toContain("hall 3");
});
