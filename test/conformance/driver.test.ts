import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DRIVERS } from "../../drivers/index.ts";
import { CHECKS } from "./checks.ts";
import { type Rig, startRig } from "./rig.ts";

const DOC = path.resolve(import.meta.dirname, "../../docs/generated/conformance.md");
const TYPES = Object.keys(DRIVERS);
/** `type: check` of each that has passed. */
const passed = new Set<string>();

describe.each(TYPES)("%s", (type) => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await startRig(type);
  });
  afterAll(() => rig.close());

  for (const { name, run, timeoutMs = 15_000 } of CHECKS)
    it(
      name,
      async () => {
        await run(rig);
        passed.add(`${type}: ${name}`);
      },
      timeoutMs,
    );
});

it("the generated table says what has passed", async () => {
  console.log(
    `conformance: ${TYPES.length} driver(s), ${CHECKS.length} checks each, ${passed.size} of ${TYPES.length * CHECKS.length} passed`,
  );
  await expect(`${table()}\n`).toMatchFileSnapshot(DOC);
});

function table(): string {
  const row = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [
    "# What every driver has been shown to do",
    "",
    "Written by the conformance suite (`test/conformance`) from its run, which every driver in the registry goes through over a real socket, with its own simulator behind a proxy that misbehaves.",
    "",
    row(["a driver", ...TYPES.map((type) => `\`${type}\``)]),
    row(["---", ...TYPES.map(() => "---")]),
    ...CHECKS.map(({ name }) => row([name, ...TYPES.map((type) => (passed.has(`${type}: ${name}`) ? "passed" : "**not passed**"))])),
  ].join("\n");
}
