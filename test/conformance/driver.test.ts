import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { whyUnasked } from "./check.ts";
import { CHECKS } from "./checks.ts";
import { type Rig, startRig } from "./rig.ts";
import { SUBJECTS } from "./subjects.ts";

const DOC = path.resolve(import.meta.dirname, "../../docs/generated/conformance.md");
const TYPES = SUBJECTS.map(({ type }) => type);
/** By `type: check`, what came of it. */
const outcomes = new Map<string, string>();

describe.each(TYPES)("%s", (type) => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await startRig(type);
  });
  afterAll(() => rig.close());

  for (const check of CHECKS)
    it(
      check.name,
      async () => {
        const unasked = await whyUnasked(check, rig);
        if (unasked === undefined) await check.run(rig);
        outcomes.set(`${type}: ${check.name}`, unasked === undefined ? "passed" : `not asked: ${unasked}`);
      },
      check.timeoutMs ?? 15_000,
    );
});

it("the generated table says what has passed", async () => {
  const all = [...outcomes.values()];
  const passed = all.filter((outcome) => outcome === "passed").length;
  console.log(`conformance: ${TYPES.length} driver(s), ${CHECKS.length} checks, ${passed} passed, ${all.length - passed} not asked`);
  await expect(`${table()}\n`).toMatchFileSnapshot(DOC);
});

function table(): string {
  const row = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [
    "# What every driver has been shown to do",
    "",
    "Written by the conformance suite (`test/conformance`) from its run, which every driver in the registry goes through over a real socket, with its own simulator behind a proxy that misbehaves. `rack` is a driver of the tests alone (`test/support/rack`): it reads over datagrams and has every ability of the contract. `gauge` is the example of [write-a-driver.md](../write-a-driver.md).",
    "",
    row(["a driver", ...TYPES.map((type) => `\`${type}\``)]),
    row(["---", ...TYPES.map(() => "---")]),
    ...CHECKS.map(({ name }) => row([name, ...TYPES.map((type) => outcomes.get(`${type}: ${name}`) ?? "**not passed**")])),
  ].join("\n");
}
