import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { startModbusPlant } from "../../../drivers/modbus_tcp/simulator.ts";
import { commandLine } from "../../../test/support/command-line.ts";

const REGISTERS: readonly (readonly [register: number, value: number])[] = [
  [0, 250],
  // 1.5 as float32, the low word first; and the high word first.
  [2, 0x0000],
  [3, 0x3fc0],
  [10, 0x3fc0],
  [11, 0x0000],
];

async function withPlant() {
  const holding = new Map(REGISTERS.map(([register, value]) => [register, () => value] as const));
  const plant = await startModbusPlant({ port: 0, units: new Map([[1, { holding }]]) });
  onTestFinished(() => plant.close());
  const cli = await commandLine();
  cli.write("policy.yaml", "sources: {loopback: true}\n");
  await cli.well("source", "add", "press-1", "modbus_tcp", "host=127.0.0.1", `port=${plant.port}`, "unit=1");
  const listed = async (): Promise<readonly Readonly<Record<string, unknown>>[]> =>
    JSON.parse(await cli.well("variables", "list", "press-1", "--json"));
  const take = (file: string, ...words: string[]) => cli.run("variables", "import", "press-1", file, ...words);
  return { ...cli, listed, take };
}

const kepwareTag = (name: string, address: string, type: number) => ({
  "common.ALLTYPES_NAME": name,
  "servermain.TAG_ADDRESS": address,
  "servermain.TAG_DATA_TYPE": type,
});
const kepwareDevice = (name: string, ...tags: readonly object[]) => ({
  "common.ALLTYPES_NAME": name,
  "servermain.DEVICE_ID_STRING": "<192.0.2.7>.1",
  tags,
});

test("projects and lists of Kepware and Ignition are imported, and read from the device with the values that those programs show", async () => {
  const { folder, listed, take, write, well } = await withPlant();
  const kepware = write(
    "kepware.json",
    JSON.stringify({
      project: {
        channels: [
          {
            "common.ALLTYPES_NAME": "Hall",
            devices: [
              kepwareDevice("Oven", kepwareTag("raw", "400001", 5), kepwareTag("flow", "400003", 8), kepwareTag("day", "400005", 12)),
              kepwareDevice("Press", kepwareTag("other", "400001", 5)),
            ],
          },
        ],
      },
    }),
  );
  const several = await take(kepware);
  expect([several.code, several.out]).toEqual([2, ""]);
  expect(several.err).toContain("has tags of 2 devices; choose one with --device NAME: Hall.Oven (3 tags), Hall.Press (1 tag)");
  expect((await take(kepware, "--device", "Hall.Ofen")).err).toContain("has no such device; did you mean");

  const tried = await take(kepware, "--device", "oven", "--try");
  expect([tried.code, await listed()]).toEqual([1, []]);
  expect(tried.out).toMatch(/2 to create, 0 to change, 0 to delete, 0 unchanged; nothing was changed/);
  expect(tried.out).toMatch(/^raw +400001 +250 +uint16 +good/m);
  expect(tried.out).toMatch(/^flow +400003@CDAB +1\.5 +float32 +good/m);
  expect(tried.out).toContain("addresses in the words of this collector: 1, the first 400003 as 400003@CDAB");
  expect(tried.err).toMatch(/kepware\.json: Hall\.Oven\.day: the data type Date has no counterpart/);

  const taken = await take(kepware, "--device", "Hall.Oven", "--json");
  expect([taken.code, JSON.parse(taken.out)]).toMatchObject([
    1,
    {
      list: { program: "Kepware", form: "project (JSON)", read: 3, devices: { "Hall.Oven": 3, "Hall.Press": 1 }, translated: 1 },
      counts: { created: 2, changed: 0, deleted: 0, same: 0, refused: 1 },
      problems: [{ place: "Hall.Oven.day", count: 1, tags: [{ name: "day" }] }],
    },
  ]);

  const csv = write(
    "kepware.csv",
    "Tag Name,Address,Data Type,Respect Data Type,Client Access,Scan Rate,Scaling,Raw Low,Raw High,Scaled Low,Scaled High\nzone.scaled,400001,Word,1,R/W,100,Linear,0,1000,0,100\n",
  );
  // A preview needs no key that may write.
  const list = await take(csv, "--try", "--json", "--key-file", join(folder, "keys", "collector.key"));
  expect([list.code, JSON.parse(list.out)]).toMatchObject([
    0,
    { dry_run: true, counts: { created: 1 }, tried: { ok: true, values: [{ name: "zone.scaled", value: 25, quality: "good" }] } },
  ]);

  const opc = (name: string, path: string) => ({
    name,
    tagType: "AtomicTag",
    valueSource: "opc",
    opcServer: "Ignition OPC UA Server",
    opcItemPath: path,
  });
  const ignition = write(
    "ignition.json",
    JSON.stringify({
      name: "Line",
      tagType: "Folder",
      tags: [
        opc("raw", "ns=1;s=[Press]HR1"),
        opc("next", "ns=1;s=[Press]HR22"),
        opc("flow", "ns=1;s=[Press]HRF11"),
        { name: "s\u001b[31m\u202et", tagType: "AtomicTag", valueSource: "memory" },
      ],
    }),
  );
  const both = await take(ignition, "--dry-run");
  expect([both.code, both.out]).toEqual([
    2,
    expect.stringMatching(/ignition\.json: Ignition tag export \(JSON\), 4 tags read, 4 refused\n$/),
  ]);
  expect(both.err).toMatch(
    /Line\/raw and 1 more \(Line\/next\): address: "HR1" is an address of Ignition with two meanings; write holding:0 .* or holding:1 .*; choose with --count-from/,
  );
  expect(both.err).toContain("Line/s\\u001b[31m\\u202et: is not read from a device");
  expect((await take(ignition, "--count-from", "2")).err).toContain("expected 0 or 1");
  const counted = await take(ignition, "--count-from", "1", "--replace");
  expect(counted.out).toContain(
    "addresses in the words of this collector: 3, the first HR1 as holding:0\npress-1: 3 created, 0 changed, 0 deleted, 0 unchanged",
  );
  expect(counted.err).toContain("nothing was deleted");
  expect((await listed()).map(({ name, address, type }) => [name, address, type])).toEqual([
    ["raw", "400001", "uint16"],
    ["flow", "400003@CDAB", "float32"],
    ["Line/raw", "holding:0", "int16"],
    ["Line/next", "holding:21", "int16"],
    ["Line/flow", "holding:10", "float32"],
  ]);
  const read = JSON.parse(await well("read", "press-1", "holding:0:int16", "holding:10:float32", "400003@CDAB:float32", "--json"));
  expect(read.values.map(({ value }: { readonly value: unknown }) => value)).toEqual([250, 1.5, 1.5]);
});

test("--try of a device that does not answer says why, and --dry-run counts what a file of our own would do", async () => {
  const { run, well, write } = await commandLine();
  await well("source", "add", "press-1", "modbus_tcp", "host=127.0.0.1", "port=1");
  const file = write("own.csv", "name;address\na;holding:0\nb;nothing\n");
  const preview = await run("variables", "import", "press-1", file, "--dry-run", "--json");
  expect([preview.code, JSON.parse(preview.out)]).toMatchObject([
    1,
    { dry_run: true, counts: { created: 1, refused: 1 }, problems: [{ line: 3 }] },
  ]);
  const tried = await run("variables", "import", "press-1", file, "--try");
  expect([tried.code, tried.out]).toEqual([3, expect.stringMatching(/1 to create[\s\S]*NAME[\s\S]*Next step:/)]);
  const device = await run("variables", "import", "press-1", file, "--device", "x");
  expect([device.code, device.err]).toEqual([2, expect.stringContaining("not the tag list of another program")]);
  expect(JSON.parse(await well("variables", "list", "press-1", "--json"))).toEqual([]);
});
