import { cpus } from "node:os";
import { Command, InvalidArgumentError } from "commander";
import { killsHeld, soakKill } from "./kill.ts";
import { FAULTS, type FaultKind } from "./kill-faults.ts";
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
  for (const [name, value] of Object.entries(result)) console.log(`  ${name}: ${Array.isArray(value) ? JSON.stringify(value) : value}`);
};

const program = new Command("soak").description("Long tests of what the buffer promises. Exit: 0 the promise held, 1 it did not.");
program
  .command("kill")
  .description(
    "kill -9 of the whole pipeline, again and again, with a broker that refuses, acknowledgements that get lost, a disk that fails, a clock that is set and pages that are damaged; both ends are compared",
  )
  .option("--rounds <n>", "kills", whole, 50)
  .option("--seed <n>", "of the moments", whole, 1)
  .option("--faults <list>", `of the machine: some of ${FAULTS.join()}, or none; disk and clock need gcc`, kinds, FAULTS)
  .action(async ({ rounds, seed, faults }: { rounds: number; seed: number; faults: readonly FaultKind[] }) => {
    const startedMs = performance.now();
    const result = await soakKill({ rounds, seed, faults }, progress("kill", rounds));
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
