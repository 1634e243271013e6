import { globSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import config from "../../vitest.config.ts";
import { leftOutWords } from "./left-out.ts";
import { TIERS, type Tier, tierOf } from "./tiers.ts";

const FILES = globSync("{src,drivers,gateway,simulators,package,test}/**/*.test.ts");

test("each test file is in the runs of its tier, and in no other", async () => {
  expect(FILES.length).toBeGreaterThan(500);
  const runs = new Map<Tier, readonly string[]>();
  for (const tier of TIERS) {
    const { test: given } = await config({ mode: tier, command: "serve" });
    const projects = (given?.projects ?? []) as readonly { readonly test: { readonly include: readonly string[] } }[];
    runs.set(
      tier,
      projects.flatMap(({ test: { include } }) => include),
    );
  }
  expect(
    FILES.map((file) => [file, TIERS.flatMap((tier) => (runs.get(tier) ?? []).flatMap((one) => (one === file ? [tier] : [])))]),
  ).toEqual(FILES.map((file) => [file, [tierOf(file)]]));
});

test.each([
  ["src/agent/time.test.ts", "short"],
  ["src/api/server/throttle.system.test.ts", "system"],
  ["test/e2e/slice.test.ts", "system"],
  ["test/e2e/kills.parts.test.ts", "parts"],
  ["test/isolation/fins.nightly.test.ts", "nightly"],
  ["test/conformance/sink.test.ts", "short"],
] as const)("%s is of the tier %s", (file, tier) => expect(tierOf(file)).toBe(tier));

/** Ways in which a test tells that a part or root is missing. */
const NEEDS = /COLLECTOR_REQUIRE_PARTS|hasMosquitto|hasCompiler|isChromiumMissing|\.(runIf|skipIf)\(/;

test("a test that needs root or a part of Debian is in the tier parts, or runs each night", () => {
  const wrong = FILES.filter(
    (file) => file !== "test/tiers/tiers.test.ts" && !["parts", "nightly"].includes(tierOf(file)) && NEEDS.test(readFileSync(file, "utf8")),
  );
  expect(wrong).toEqual([]);
});

test("a run says what it left out, and how to run that", () => {
  const files = ["src/a.test.ts", "src/a.system.test.ts", "test/e2e/b.test.ts", "test/x.parts.test.ts"];
  expect(leftOutWords("short", files)).toBe(
    "Left out: 2 files (npm run test:system), 1 file (npm run test:parts). CONTRIBUTING.md says what each needs.",
  );
});
