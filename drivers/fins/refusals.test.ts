import { describe, expect, it } from "vitest";
import { refusalOf } from "./refusals.ts";

/** The answer to a memory area read, with this end code. */
const answer = (code: string): Buffer => Buffer.from(`c00002000b00000a00000101${code}`, "hex");
const words = (code: string, model?: string): string => refusalOf(answer(code), "D100", 10, model).message;

describe("a refusal by an NJ or NX", () => {
  it.each(["1004", "1101", "1103"])("names the setting that gives it the memory of CJ-series units: %s", (code) => {
    for (const model of ["NJ501-1300", "NX102-9000"]) expect(words(code, model)).toMatch(/Memory Settings for CJ-series Units.*vendor_a/);
  });

  it("says the usual of any other model, and of any other end code", () => {
    for (const model of ["CJ2M-CPU33", undefined]) expect(words("1004", model)).toMatch(/check target_plc$/);
    expect(words("0204", "NJ501-1300")).toMatch(/it is read again with the next readout$/);
  });
});
