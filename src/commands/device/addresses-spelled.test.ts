import { describe, expect, it } from "vitest";
import { splitTyped } from "../../../drivers/lib/spellings.ts";
import { SUBJECTS } from "../../../test/support/spellings.ts";
import { addressCheck } from "./addresses.ts";

const PROGRAMS = ["Kepware", "Ignition"];
const NO_SETTINGS = { state_dir: "/none", bindings: {}, sources: {} };

describe.each(Object.entries(SUBJECTS))("addresses of imported lists for %s", (type, { tools }) => {
  const rows = tools
    .filter(({ tool }) => PROGRAMS.includes(tool))
    .flatMap(({ tool, spellings }) => spellings.filter(({ isOther }) => !isOther).map((row) => ({ tool, ...row })));
  const checked = addressCheck({ uuid: "0ebb773e-4e24-4aa6-ab3c-b17e68a3d9dc", name: "a", type }, NO_SETTINGS);

  it.each(rows)("$tool: $text", async ({ tool, text, ours = [] }) => {
    const { readAddress } = await checked;
    const read = readAddress({ address: text, type: null }, tool, undefined);
    const [only, ...others] = ours.map(([write]) => write);
    if (only === text) expect(read).toEqual({ address: text, type: null });
    else if (only !== undefined && others.length === 0) {
      const { address, type: own } = splitTyped(only);
      expect(read).toEqual({ address, type: own ?? null });
    } else expect(read).toMatch(/^address: /);
  });
});

it("a setting of the program that is known leaves one meaning, and the type of the tag stays", async () => {
  const { readAddress } = await addressCheck({ uuid: "a", name: "a", type: "modbus_tcp" }, NO_SETTINGS);
  const read = (countsFrom: 0 | 1 | undefined, type: string | null) => readAddress({ address: "[D]HRF100", type }, "Ignition", countsFrom);
  expect(read(1, null)).toEqual({ address: "holding:99", type: "float32" });
  expect(read(0, null)).toEqual({ address: "holding:100", type: "float32" });
  expect(read(1, "uint32")).toEqual({ address: "holding:99", type: "uint32" });
  expect(read(undefined, null)).toMatch(/two meanings.*; choose with --count-from$/);
  // The form of another program decides nothing.
  expect(readAddress({ address: "HRF100", type: null }, "Kepware", 1)).toMatch(/^address: "HRF100" is an address of Ignition/);
});
