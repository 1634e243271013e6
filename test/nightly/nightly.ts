import { spawn } from "node:child_process";
import path from "node:path";
import { parseArgs } from "node:util";

const ROOT = path.resolve(import.meta.dirname, "../..");

/** One command of the night. */
interface Step {
  readonly name: string;
  readonly about: string;
  readonly command: readonly [string, ...string[]];
  readonly env?: Readonly<Record<string, string>>;
}

/** Times that the properties of the quick tests run, each with seeds of its own. */
const ROUNDS = 10;

/** `seed` is printed with a failure, so that the same night can be had again. */
const stepsOf = (seed: number): readonly Step[] => [
  ...Array.from(
    { length: ROUNDS },
    (_, round): Step => ({
      name: `properties ${round + 1}`,
      about: "the unit tests, whose properties take other seeds each time",
      command: ["npx", "vitest", "run", "--mode", "quick"],
    }),
  ),
  {
    name: "simulators",
    about: "the isolation suites of all simulators",
    command: ["npx", "vitest", "run", "--mode", "nightly"],
  },
  {
    name: "mutants",
    about: "faults planted over every room, each found by a test",
    command: ["npm", "run", "test:mutants"],
  },
  {
    name: "lane model",
    about: "350 plays of faults on a shared device",
    command: ["npx", "vitest", "run", "test/isolation/lane-model.test.ts"],
    env: { LANE_SEED: String(seed), LANE_RUNS: "350" },
  },
  {
    name: "kills",
    about: "30 kills of the pipeline while everything around it fails",
    command: ["npm", "run", "soak", "--", "kill", "--rounds", "30", "--seed", String(seed)],
  },
  {
    name: "power",
    about: "200 images of a disk after a power failure",
    command: ["npm", "run", "soak", "--", "power", "--images", "200", "--seed", String(seed)],
  },
];

const HELP = `npm run test:nightly -- [--only NAME] [--seed N] [--json]

Runs one after the other what takes long, and says at the end what failed. Exit: 0 all passed, 1 something failed.

  npm run test:nightly
  npm run test:nightly -- --only kills --seed 4711
`;

const { values } = parseArgs({
  options: { help: { type: "boolean" }, json: { type: "boolean" }, only: { type: "string" }, seed: { type: "string" } },
});
const seed = Number(values.seed ?? Math.floor(Math.random() * 1_000_000));
const steps = stepsOf(seed).filter(({ name }) => name.startsWith(values.only ?? ""));
if (values.help || steps.length === 0 || !Number.isInteger(seed)) {
  console.log(
    `${HELP}\nSteps:\n${stepsOf(seed)
      .map(({ name, about }) => `  ${name.padEnd(14)} ${about}`)
      .join("\n")}`,
  );
  process.exit(values.help ? 0 : 2);
}

/** Exit code of a step; its output is this process's error stream, so that `--json` has stdout for itself. */
const run = ({ command: [program, ...words], env }: Step): Promise<number> =>
  new Promise((done) => {
    const child = spawn(program, words, { cwd: ROOT, stdio: ["ignore", 2, 2], env: { ...process.env, ...env } });
    child.once("error", () => done(127));
    child.once("exit", (code) => done(code ?? 1));
  });

const results: { readonly name: string; readonly seconds: number; readonly passed: boolean }[] = [];
for (const [place, step] of steps.entries()) {
  console.error(`\n[${place + 1}/${steps.length}] ${step.name}: ${step.about}`);
  const began = performance.now();
  const code = await run(step);
  results.push({ name: step.name, seconds: Math.round((performance.now() - began) / 1000), passed: code === 0 });
}
if (values.json) console.log(JSON.stringify({ seed, results }));
else {
  console.log(`\nseed ${seed}`);
  for (const { name, seconds, passed } of results) console.log(`${passed ? "passed" : "FAILED"}  ${name.padEnd(14)} ${seconds} s`);
}
process.exit(results.every(({ passed }) => passed) ? 0 : 1);
