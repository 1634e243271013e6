import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";

interface Rule {
  readonly from: RegExp;
  /** Targets that `from` may not import; SELF is the driver's own folder. */
  readonly never: RegExp;
  readonly why: string;
}

/** Which part may not import which, and why. Targets are paths of ours, or `npm:<package>`. Every rule that fits a file applies. */
const RULES: readonly Rule[] = [
  { from: /^src\/base\//, never: /^(?!src\/base\/)/, why: "what any program needs depends on nothing" },
  {
    from: /^src\/model\//,
    never: /^(src\/(?!model\/|base\/)|drivers\/|npm:(?!zod$)|node:)/,
    why: "the vocabulary depends on nothing but zod",
  },
  {
    from: /^drivers\//,
    never: /^src\/(?!model\/|base\/|lib\/(?:launch|networks|system-lookup|tcp-opening)\.ts)/,
    why: "a driver knows the vocabulary, not the agent; launching, networks, the system's look-up and the opening of TCP are one for all",
  },
  {
    from: /^drivers\/plugin\//,
    never: /^drivers\/(?!lib\/|driver\.ts|facts\.ts|profile\/settings\.ts|SELF\/)/,
    why: "a plugin and a profile share the settings of the types that both can read",
  },
  {
    from: /^drivers\/(?!odac\/|vendor_b\/|plastcontrol\/|plugin\/)[a-z0-9_]+\//,
    never: /^drivers\/(?!lib\/|(?:driver|facts|replay|simulator)\.ts|SELF\/)/,
    why: "drivers do not know each other",
  },
  {
    from: /^drivers\/(odac|vendor_b|plastcontrol)\//,
    never: /^drivers\/(?!lib\/|(?:driver|facts|replay|simulator)\.ts|(?:profile|plugin)\/driver\.ts|SELF\/)/,
    why: "types without a public protocol are read by a profile or a plugin, and know nothing else of each other",
  },
  { from: /^drivers\/lib\//, never: /^drivers\/(?!lib\/|driver\.ts)/, why: "what drivers share knows no driver" },
  {
    from: /^drivers\/[a-z0-9_]+\/simulator(-[a-z]+)?\.ts/,
    never: /^drivers\/(lib|SELF)\/(?!simulator)/,
    why: "a simulator that shares frame code with its driver repeats its mistakes",
  },
  {
    from: /^drivers\/(?!opcua\/)[a-z0-9_]+\/simulator(-[a-z]+)?\.ts/,
    never: /^npm:/,
    why: "a simulator speaks its protocol by itself; an OPC UA server is too much to write again",
  },
  {
    from: /^gateway\//,
    never: /^(?!gateway\/|node:)/,
    why: "the reference gateway stands for programs in any language: it has nothing of the collector's and no package",
  },
  {
    from: /^(src|drivers)\/(?!.*simulator)/,
    never: /^gateway\//,
    why: "the reference gateway is the other end of its driver, and no part of the shipped bundle",
  },
  { from: /^(src|drivers)\/(?!.*simulator)/, never: /\/simulator(-[a-z]+)?\.ts$/, why: "simulators are no part of the shipped bundle" },
  {
    from: /^src\/(?!main\.ts|run\.ts|threads\/(?:session|api)\/worker\.ts|commands\/)/,
    never: /^drivers\/(?!driver\.ts)/,
    why: "only what composes chooses drivers",
  },
  {
    from: /^src\/console\//,
    never: /^(src\/(?!console\/|base\/(?:duration|shell-word)\.ts|service\/page\/told\.ts)|drivers\/|node:|npm:(?!preact|uplot))/,
    why: "the console runs in a browser and knows of the service only what it is told",
  },
  {
    from: /^src\/(?!console\/)/,
    never: /^src\/console\/|^npm:(preact|uplot)/,
    why: "no part of the service runs code of the browser",
  },
  { from: /^src\/lib\//, never: /^src\/(?!lib\/|model\/|base\/)|^drivers\//, why: "what all rooms share knows none of them" },
  {
    from: /^src\/os\//,
    never: /^src\/(?!os\/|lib\/|model\/|base\/)|^drivers\//,
    why: "the operating system's side knows only the vocabulary",
  },
  {
    from: /^src\/agent\//,
    never: /^src\/(sinks|delivery|buffer|api|commands|service|configuration|threads)\//,
    why: "the agent reads; what comes in and goes out is composed around it",
  },
  { from: /^src\/(sinks|delivery|buffer)\//, never: /^src\/agent\//, why: "the agent uses them, not the reverse" },
  { from: /^src\/buffer\//, never: /^src\/(sinks|delivery)\//, why: "the buffer serves any sink" },
  { from: /^src\/sinks\//, never: /^src\/delivery\//, why: "a kind of sink knows the contract, not the engine that drives it" },
  {
    from: /^src\/api\//,
    never: /^src\/(configuration\/|agent\/|sinks\/|delivery\/|buffer\/)/,
    why: "client and server of the API know nothing of what is made of it",
  },
  { from: /^src\/api\/(?!server\/)/, never: /^src\/api\/server\//, why: "the agent reaches the embedded API over HTTP like any other" },
  { from: /^src\/(?!threads\/api\/|api\/server\/)/, never: /^src\/api\/server\//, why: "the embedded API runs in a thread of its own" },
  {
    from: /^src\/tag-lists\//,
    never: /^(src\/(?!tag-lists\/|model\/|base\/|configuration\/(?:csv|variable-file)\.ts)|drivers\/)/,
    why: "what another program wrote is read before any device or driver is known; the command gives the grammar of addresses",
  },
  {
    from: /^(src|drivers)\/(?!tag-lists\/|commands\/)/,
    never: /^src\/tag-lists\//,
    why: "only a person's command reads lists of other programs: the service loads none of their libraries",
  },
  {
    from: /^(src|drivers)\/(?!tag-lists\/)/,
    never: /^npm:(smol-toml|sax|yauzl)$/,
    why: "parsers of other programs' files are loaded for one file, behind its bounds",
  },
  {
    from: /^src\/(?!threads\/)/,
    never: /^src\/threads\/\w+\/worker\.ts/,
    why: "a thread's entry is started, never imported",
  },
  {
    from: /^(src|drivers)\/(?!main\.ts|run\.ts|commands\/)/,
    never: /^src\/(main\.ts|run\.ts|pipeline\.ts|commands\/)/,
    why: "composition is at the top",
  },
  {
    from: /^(src|drivers)\/(?!commands\/)/,
    never: /^src\/commands\/hello\//,
    why: "only a person's command asks a port what it is: the service sends no hello",
  },
  {
    from: /^simulators\//,
    never: /^(src\/(?!model\/|base\/)|drivers\/(?!(?:[a-z0-9_]+\/)?simulator(-[a-z]+)?\.ts)|npm:|test\/)/,
    why: "the machines to practise with are the drivers' simulators, with nothing of the collector but its words",
  },
  {
    from: /^simulators\/kit\//,
    never: /^(src|drivers\/(?!simulator\.ts)|simulators\/(?!kit\/|reset\.ts))/,
    why: "the simulators' kit shares no code with a driver, and knows no simulator",
  },
  {
    from: /^drivers\/([a-z0-9_]+\/)?simulator(-[a-z]+)?\.ts/,
    never: /^simulators\/(?!kit\/)/,
    why: "a driver's simulator is made of the kit, and does not know who starts it",
  },
  {
    from: /^(src|gateway)\/|^drivers\/(?!([a-z0-9_]+\/)?simulator(-[a-z]+)?\.ts)/,
    never: /^simulators\//,
    why: "the collector holds no simulator: the package collector-simulators brings them",
  },
  {
    from: /^workbench\//,
    never:
      /^(src\/(?!model\/|base\/|lib\/capture\/)|drivers\/(?!([a-z0-9_]+\/)?(facts|replay(-[a-z]+)?)\.ts$)|gateway\/|simulators\/|npm:|test\/)/,
    why: "the workbench is a package of its own, with nothing of the collector but its words, its protocols' frames and the form of its captures",
  },
  {
    from: /^(src|drivers|gateway|simulators)\//,
    never: /^workbench\//,
    why: "the collector reads no capture: the package collector-workbench brings what does",
  },
  {
    from: /^drivers\/(?!profile\/)([a-z0-9_]+\/)?(facts|replay(-[a-z]+)?)\.ts/,
    never: /^(src\/(?!model\/|base\/)|drivers\/(?!(facts|replay)\.ts|SELF\/(facts|binary|replay-[a-z]+)\.ts)|npm:(?!zod$))/,
    why: "the facts of a type and its replay are read where no driver is loaded; opcua's decoder imports nothing",
  },
  {
    from: /^(src|drivers)\/(?!([a-z0-9_]+\/)?replay(-[a-z]+)?\.ts)/,
    never: /^drivers\/(?!profile\/)([a-z0-9_]+\/)?replay(-[a-z]+)?\.ts/,
    why: "what replays a device is the workbench's, and no part of the collector",
  },
  { from: /^(src|drivers)\//, never: /^test\//, why: "tests use the program, not the reverse" },
];

const isTest = (file: string) => file.endsWith(".test.ts");
const files = ["src", "drivers", "gateway", "simulators", "workbench"]
  .flatMap((top) => readdirSync(top, { recursive: true, encoding: "utf8" }).map((file) => `${top}/${file}`))
  .filter((file) => /\.tsx?$/.test(file) && !isTest(file));

function importsOf(file: string): readonly string[] {
  const found = [...readFileSync(file, "utf8").matchAll(/(?:\bfrom|\bimport)\s*\(?\s*"([^"]+)"/g)].map((match) => match[1] ?? "");
  return found.map((target) => {
    if (target.startsWith(".")) return path.posix.join(path.posix.dirname(file), target);
    if (target.startsWith("node:")) return target;
    return `npm:${target.startsWith("@") ? target.split("/").slice(0, 2).join("/") : (target.split("/")[0] ?? "")}`;
  });
}

function broken(file: string, target: string): string | undefined {
  for (const { from, never, why } of RULES) {
    if (!from.test(file)) continue;
    const self = file.split("/")[1] ?? "";
    if (new RegExp(never.source.replaceAll("SELF", self)).test(target)) return `${file} imports ${target}: ${why}`;
  }
  return undefined;
}

/** Pairs of rooms of `src` that import each other: `one other`, in the order of the alphabet. */
function pairsOfRooms(): readonly string[] {
  const roomOf = (target: string): string | undefined => /^src\/(\w+)\//.exec(target)?.[1];
  const ways = new Set<string>();
  for (const file of files)
    for (const target of importsOf(file)) {
      const [from, to] = [roomOf(file), roomOf(target)];
      if (from !== undefined && to !== undefined && from !== to && !file.includes("/testing")) ways.add(`${from} ${to}`);
    }
  const backOf = (way: string): string => way.split(" ").toReversed().join(" ");
  return [...ways].filter((way) => way < backOf(way) && ways.has(backOf(way))).sort();
}

describe("imports", () => {
  it("finds the program", () => expect(files.length).toBeGreaterThan(30));

  it("each file imports only what it may", () =>
    expect(files.flatMap((file) => importsOf(file).flatMap((target) => broken(file, target) ?? []))).toEqual([]));

  it("no two rooms import each other", () => expect(pairsOfRooms()).toEqual([]));

  it.each([
    ["gateway/server.ts", "src/model/value.ts"],
    ["gateway/server.ts", "npm:zod"],
    ["drivers/vendor_gateway/frames.ts", "gateway/answers.ts"],
    ["src/model/value.ts", "src/agent/time.ts"],
    ["src/model/value.ts", "npm:pino"],
    ["drivers/modbus_tcp/driver.ts", "drivers/s7/frames.ts"],
    ["drivers/modbus_tcp/simulator.ts", "drivers/modbus_tcp/driver.ts"],
    ["drivers/modbus_tcp/simulator.ts", "drivers/lib/bytes.ts"],
    ["drivers/modbus_tcp/simulator.ts", "npm:modbus-serial"],
    ["drivers/opcua/simulator.ts", "drivers/opcua/session.ts"],
    ["src/agent/source.ts", "drivers/modbus_tcp/driver.ts"],
    ["src/delivery/engine.ts", "src/agent/time.ts"],
    ["src/lib/retry.ts", "src/agent/time.ts"],
    ["src/agent/source.ts", "src/delivery/pump.ts"],
    ["src/sinks/mqtt/sink.ts", "src/delivery/pump.ts"],
    ["src/run.ts", "src/threads/store/worker.ts"],
    ["src/configuration/variable-files.ts", "src/tag-lists/index.ts"],
    ["src/tag-lists/take.ts", "drivers/lib/spellings.ts"],
    ["src/run.ts", "src/commands/hello/hellos.ts"],
    ["src/agent/source.ts", "src/commands/hello/greet.ts"],
    ["src/api/client.ts", "src/api/server/database.ts"],
    ["src/commands/simulate/simulate.ts", "simulators/main.ts"],
    ["simulators/main.ts", "drivers/modbus_tcp/driver.ts"],
    ["simulators/gate.ts", "src/lib/retry.ts"],
    ["simulators/kit/cotp.ts", "drivers/lib/iso.ts"],
    ["simulators/kit/cotp.ts", "drivers/s7/simulator-frames.ts"],
    ["drivers/s7/simulator-plc.ts", "simulators/main.ts"],
    ["drivers/s7/link.ts", "simulators/kit/cotp.ts"],
    ["drivers/lib/iso.ts", "simulators/kit/cotp.ts"],
    ["simulators/machines/machines.ts", "test/plant/configured.ts"],
    ["src/commands/replay/replay.ts", "workbench/main.ts"],
    ["src/lib/capture/write.ts", "workbench/capture/packets.ts"],
    ["workbench/main.ts", "src/commands/io.ts"],
    ["workbench/replay/device.ts", "drivers/modbus_tcp/driver.ts"],
  ])("would refuse %s importing %s", (file, target) => expect(broken(file, target)).toBeDefined());
});

/** Files that may touch the process of their own accord. */
const PROCESS =
  /^(gateway\/main\.ts|drivers\/plugin\/pipe\.ts|src\/(main\.ts|threads\/\w+\/worker\.ts|lib\/thread\/guard\.ts|os\/proxy-environment\.ts))/;

// The proxy of the environment may hold a password, which is read where it is used so that it travels to no thread.
// A plugin is ended with its children, as a process group.
it("argv, exit and the environment are main's", () => {
  const touching = files
    .filter((file) => !PROCESS.test(file))
    .flatMap((file) => {
      const text = readFileSync(file, "utf8").replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, "");
      const [found] = /\bprocess\.(exit|argv|env|on|once|stdout|stderr|stdin|kill|exitCode)\b/.exec(text) ?? [];
      return found === undefined ? [] : [`${file}: ${found}`];
    });
  expect(touching).toEqual([]);
});
