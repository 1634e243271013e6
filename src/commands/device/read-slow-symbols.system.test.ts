import { expect, onTestFinished, test } from "vitest";
import { largeProgram, startS7PlusPlc } from "../../../drivers/s7plus/simulator.ts";
import { EXIT } from "../io.ts";
import { runCommand } from "../testing.ts";

/** A controller that takes some three seconds to list the symbols of a block. */
async function slowController() {
  const plc = await startS7PlusPlc({ program: largeProgram(1000) });
  onTestFinished(() => plc.close());
  plc.explorePause = { bytes: 1200, ms: 150 };
  plc.fragmentBytes = 600;
  return (...words: string[]) =>
    runCommand("read", "s7plus", "host=127.0.0.1", `port=${plc.port}`, "Block_1.value_999", "--json", ...words);
}

test("looking addresses up has a time of its own, not that of the pass", async () => {
  const read = await slowController();
  const { code, out, err } = await read("--timeout", "1s");
  expect([code, JSON.parse(out).values[0]], err).toMatchObject([EXIT.good, { quality: "good" }]);
});

test("a look-up that takes too long is no answer to the variable, with the setting that gives it more", async () => {
  const read = await slowController();
  const { code, out, err } = await read("prepare_timeout=1s", "--timeout", "20s");
  expect([code, JSON.parse(out).values[0].detail]).toEqual([EXIT.variableBad, expect.stringContaining("looked up")]);
  expect(err).toContain("give more with prepare_timeout=");
});
