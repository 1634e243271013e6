import { cpus } from "node:os";
import { Command, InvalidArgumentError } from "commander";
import { killsHeld, soakKill } from "./kill.ts";
import { FAULT_WORDS, FAULTS, type FaultKind } from "./kill-plan.ts";
import { soakPower } from "./power.ts";

const whole = (text: string): number => {
  const number = Number(text);
  if (!Number.isInteger(number) || number < 1) throw new InvalidArgumentError("expected a whole number from 1 on");
  return number;
};
const kinds = (text: string): readonly FaultKind[] => {
  if (text === "none") return [];
  const found = FAULTS.filter((kind) => text.split(",").includes(kind));
  if (found.length !== text.split(",").length) throw new InvalidArgumentError(`expected some of ${FAULTS.join()}, or none`);
  return found;
};
const progress = (name: string, of: number) => (done: number) => {
  if (process.stderr.isTTY) process.stderr.write(`\r${name} ${done}/${of} `);
};
const tell = (what: string, result: object, startedMs: number): void => {
  const [cpu] = cpus();
  console.log(`${what}, ${Math.round((performance.now() - startedMs) / 1000)} s on ${cpus().length} × ${cpu?.model ?? "unknown CPU"}`);
  for (const [name, value] of Object.entries(result))
    console.log(`  ${name}: ${typeof value === "object" ? JSON.stringify(value) : value}`);
};

interface KillArguments {
  readonly rounds: number;
  readonly seed: number;
  readonly faults: readonly FaultKind[];
  readonly without?: readonly FaultKind[];
  readonly keep?: boolean;
}

const program = new Command("soak").description("Long tests of what the buffer promises. Exit: 0 the promise held, 1 it did not.");
program
  .command("kill")
  .description(
    "kill -9 of the whole pipeline with an MQTT and a platform sink, again and again, while all around it fails; both ends are compared",
  )
  .option("--rounds <n>", "kills", whole, 50)
  .option("--seed <n>", "of the moments", whole, 1)
  .option(
    "--faults <list>",
    "what may fail, each life some of it: names with commas, or none; disk, full and clock need gcc",
    kinds,
    FAULTS,
  )
  .option("--without <list>", "all but these", kinds)
  .option("--keep", "keeps the folder with the buffer")
  .addHelpText("after", () => ["", "Faults:", ...FAULTS.map((kind) => `  ${kind.padEnd(18)}${FAULT_WORDS[kind]}`)].join("\n"))
  .action(async ({ rounds, seed, without = [], keep, ...options }: KillArguments) => {
    const startedMs = performance.now();
    const faults = options.faults.filter((kind) => !without.includes(kind));
    const onKept = (folder: string) => console.log(`kept: ${folder}`);
    const result = await soakKill({ rounds, seed, faults, ...(keep && { onKept }) }, progress("kill", rounds));
    tell(`soak kill --rounds ${rounds} --seed ${seed} --faults ${faults.join() || "none"}`, result, startedMs);
    process.exitCode = killsHeld(result) ? 0 : 1;
  });
program
  .command("power")
  .description("images of the disk after its power failed, each opened and compared with what had been reported; needs gcc")
  .option("--images <n>", "crash images", whole, 500)
  .option("--seed <n>", "of what is written and what is lost", whole, 1)
  .option("--synchronous <mode>", "FULL as the collector does, or NORMAL to see the test fail", "FULL")
  .action(({ images, seed, synchronous }: { images: number; seed: number; synchronous: string }) => {
    const startedMs = performance.now();
    const result = soakPower({ images, seed, synchronous: synchronous === "NORMAL" ? "NORMAL" : "FULL" }, progress("power", images));
    tell(`soak power --images ${images} --seed ${seed} --synchronous ${synchronous}`, result, startedMs);
    const { opened, lost, pendingAgain, altered, inexact } = result;
    process.exitCode = opened === result.images && lost + pendingAgain + altered + inexact === 0 ? 0 : 1;
  });
await program.parseAsync();
