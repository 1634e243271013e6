import { existsSync, globSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { configDefaults, defineConfig, type ViteUserConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { LeftOut } from "./test/tiers/left-out.ts";
import { BESIDE, TIERS, type Tier, tierOf } from "./test/tiers/tiers.ts";

/** Tests that start threads or servers: each file in a process of its own. */
const SLOW = "**/*.{slow,system,parts,nightly}.test.ts";

/** The files that take a minute and more, the longest first: begun last, one of them would be waited for alone. */
const LONGEST = [
  "test/chaos/chaos.test.ts",
  "test/conformance/drivers/s7plus.test.ts",
  "test/isolation/shared-lane.nightly.test.ts",
  "test/isolation/onset-sockets.nightly.test.ts",
  "test/isolation/s7plus.nightly.test.ts",
  "test/lab/systemd/package.parts.test.ts",
  "test/cabinet/cabinet.parts.test.ts",
  "test/contract/documents.parts.test.ts",
  "test/e2e/pipes.nightly.test.ts",
  "test/lab/systemd/systemd.parts.test.ts",
  "test/faults/net/matrix.parts.test.ts",
  "test/conformance/drivers/opcua.test.ts",
  "test/faults/mqtt/poison.nightly.test.ts",
  "test/faults/opcua/hosted-server.nightly.test.ts",
  "test/plant/demo-kill.nightly.test.ts",
  "test/e2e/platform.test.ts",
  "test/e2e/reload.test.ts",
  "drivers/opcua/driver.system.test.ts",
  "src/commands/configuration/restore.system.test.ts",
  "src/main.system.test.ts",
  "test/contract/kill.nightly.test.ts",
  "test/faults/freeze/freeze.test.ts",
];

/** What asserts when something happened: how late a value is, what a source loses beside others. */
const TIMED = [
  "test/isolation/**/*.test.ts",
  "test/faults/freeze/*.test.ts",
  "test/faults/mqtt/{drain,slow-link.nightly,changing-link.nightly}.test.ts",
  "test/e2e/{reload,take-in.nightly,take-in-slices.nightly,take-in-slices-opcua.nightly,plan-steps.nightly}.test.ts",
  "test/faults/net/matrix.parts.test.ts",
  "src/delivery/isolation.system.test.ts",
];

/**
 * Servers and threads whose files leave nothing behind: they share a process, since a process and its modules take nearly half a second of CPU.
 * What loads node-opcua cannot: it leaves variables of the environment and address spaces.
 */
const SHARED = ["src/{api,configuration,os,service}/**/*.{slow,system}.test.ts"];

const gone = LONGEST.filter((file) => !existsSync(path.join(import.meta.dirname, file)));
if (gone.length > 0) throw new Error(`vitest.config.ts names files that are not there: ${gone.join(", ")}`);

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId, project }: TestSpecification): number => {
      const found = LONGEST.indexOf(path.relative(import.meta.dirname, moduleId));
      // A process is shared by files that follow one another: those of a project stay together.
      return found === -1 ? LONGEST.length + PROJECTS.findIndex(({ name }) => name === project.name) : found;
    };
    return (await super.sort(files)).toSorted((one, other) => place(one) - place(other));
  }
}

const COMMON = {
  // For a machine with several times as much to do as it has processors.
  testTimeout: 30_000,
  hookTimeout: 30_000,
  // Processes that tests start take what earlier ones have compiled: a start costs a third.
  env: { NODE_COMPILE_CACHE: path.join(import.meta.dirname, "node_modules/.cache/compiled") },
  // A file that has not changed is transformed once: a fifth of a quick run is transforming.
  fsModuleCache: true,
  // What is waited for without a deadline of its own comes late on a loaded machine; nothing is asserted by the default second.
  expect: { poll: { timeout: 5000 } },
} satisfies ViteUserConfig["test"];

/** Machines have few processors: the tests that assert times are served before all others. */
const BEHIND = { ...COMMON, setupFiles: [path.join(import.meta.dirname, "test/support/low-priority.ts")] } satisfies ViteUserConfig["test"];

/** The unit tests that are not slow: their files share one process's modules, since loading them takes twice the time of the tests. */
const QUICK = {
  ...BEHIND,
  name: "quick",
  include: [BESIDE, "test/{architecture,mutants,tiers,words}/**/*.test.ts"],
  exclude: [...configDefaults.exclude, SLOW],
  isolate: false,
} satisfies ViteUserConfig["test"];

/** What starts threads, processes or servers: each file in a process of its own. */
const WHOLE = {
  ...BEHIND,
  name: "whole",
  globalSetup: [path.join(import.meta.dirname, "test/support/run-folder.ts")],
  include: ["{src,drivers,gateway,simulators,workbench,package}/**/*.{slow,system,parts,nightly}.test.ts", "test/**/*.test.ts"],
  exclude: [...configDefaults.exclude, "test/{architecture,mutants,tiers,words}/**", ...TIMED, ...SHARED],
} satisfies ViteUserConfig["test"];

const SHARING = { ...BEHIND, name: "shared", include: SHARED, isolate: false } satisfies ViteUserConfig["test"];

/** Seen late once, a machine may have stalled; seen twice, the product is late. */
const AHEAD = { ...COMMON, name: "timed", include: TIMED, retry: 1 } satisfies ViteUserConfig["test"];

const PROJECTS = [AHEAD, WHOLE, SHARING, QUICK];

type Project = (typeof PROJECTS)[number];

/** The project with those of its files that belong to the tier. */
const ofTier = (project: Project, tier: Tier): Project => ({
  ...project,
  include: globSync(project.include, { exclude: "exclude" in project ? project.exclude : configDefaults.exclude }).filter(
    (file) => tierOf(file) === tier,
  ),
});

/** Everything; with `--mode quick` the quick tests alone, with `--mode` and a tier that tier. */
export default defineConfig(({ mode }) => {
  const tier = TIERS.find((one) => one === mode);
  if (mode === "quick")
    return {
      test: {
        // One more than there are processors: some tests wait.
        maxWorkers: os.availableParallelism() + 1,
        projects: [{ test: { ...QUICK, setupFiles: [...QUICK.setupFiles, path.join(import.meta.dirname, "test/support/few-runs.ts")] } }],
      },
    };
  const projects = tier ? PROJECTS.map((project) => ofTier(project, tier)).filter(({ include }) => include.length > 0) : PROJECTS;
  return {
    test: {
      // Most tests wait for sockets and timers.
      maxWorkers: 2 * os.availableParallelism(),
      sequence: { sequencer: LongestFirst },
      reporters: ["default", ...(tier ? [new LeftOut(tier)] : [])],
      projects: projects.map((test) => ({ test })),
    },
  };
});
