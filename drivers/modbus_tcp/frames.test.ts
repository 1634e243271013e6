import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { dataOf, fence, frameLength, identifiedBy, identifyFrame, miscount, requestFrame, wrongAnswer } from "./frames.ts";

const hex = (text: string) => Buffer.from(text.replaceAll(" ", ""), "hex");
const request = hex("0001 0000 0006 01 03 006b 0003");

describe("fence", () => {
  it.each([1, 2, 3, 4])("lets function %d pass", (code) => expect(fence(hex(`0001 0000 0006 01 0${code} 0000 0001`))).toBe(true));

  it("lets no other function pass, whatever its bytes", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 255 }), fc.uint8Array({ minLength: 4, maxLength: 4 }), (code, rest) => {
        fc.pre(code < 1 || code > 4);
        expect(fence(Buffer.concat([hex("0001 0000 0006 01"), Buffer.of(code), rest]))).toContain(`function ${code}`);
      }),
    );
  });

  it.each([
    ["no function", "0001 0000 0006 01"],
    ["a second request behind the first", "0001 0000 0006 01 03 0000 0001 0002 0000 0006 01 06 0000 0001"],
    ["a wrong length", "0001 0000 0007 01 03 0000 0001"],
    ["another protocol", "0001 0001 0006 01 03 0000 0001"],
    ["no register", "0001 0000 0006 01 03 0000 0000"],
    ["126 registers", "0001 0000 0006 01 03 0000 007e"],
    ["2001 coils", "0001 0000 0006 01 01 0000 07d1"],
    ["beyond the last register", "0001 0000 0006 01 03 ffff 0002"],
  ])("stops %s", (_, bytes) => expect(fence(hex(bytes))).not.toBe(true));
});

describe("frameLength", () => {
  it("waits for the header, then knows the length", () => {
    for (let n = 0; n < 6; n++) expect(frameLength(request.subarray(0, n), 0)).toBeUndefined();
    for (let n = 6; n <= 12; n++) expect(frameLength(request.subarray(0, n), 0)).toBe(12);
    expect(frameLength(Buffer.concat([hex("ff"), request]), 1)).toBe(12);
  });

  it.each([
    ["0001 0001 0006", "protocol id 1"],
    ["4854 5450 2f31", "protocol id 21584"],
    ["0001 0000 0001", "length 1"],
    ["0001 0000 00ff", "length 255"],
  ])("says that %s is out of sync: %s", (bytes, words) => expect(frameLength(hex(bytes), 0)).toContain(words));
});

describe("wrongAnswer", () => {
  it.each([
    ["the right one", "0001 0000 0009 01 03 06 022b 0000 0064", undefined],
    ["an exception", "0001 0000 0003 01 83 02", undefined],
    ["unit 0, as some devices answer", "0001 0000 0009 00 03 06 022b 0000 0064", undefined],
    ["unit 255, as some devices answer", "0001 0000 0009 ff 03 06 022b 0000 0064", undefined],
    ["another unit", "0001 0000 0009 02 03 06 022b 0000 0064", "unit 2 answered a request to unit 1"],
    ["another function", "0001 0000 0009 01 04 06 022b 0000 0064", "function 4 answered a request of function 3"],
    ["an exception of another function", "0001 0000 0003 01 84 02", "function 132"],
    ["too few registers, which is no breach", "0001 0000 0007 01 03 04 022b 0000", undefined],
    ["a count that lies", "0001 0000 0007 01 03 06 022b 0000", "6 bytes announced and 4 sent for 3 holding registers, it must be 6"],
    ["no count", "0001 0000 0002 01 03", "it must be 6"],
    ["an exception without a code", "0001 0000 0002 01 83", "8 bytes, it must have 9"],
  ])("judges %s", (_, bytes, words) => {
    const wrong = wrongAnswer(request, hex(bytes));
    if (words === undefined) expect(wrong).toBeUndefined();
    else expect(wrong).toContain(words);
  });

  it("counts bits in whole bytes", () => {
    const coils = hex("0001 0000 0006 01 01 0013 0013");
    expect(miscount(coils, hex("0001 0000 0006 01 01 03 cd6b05"))).toBeUndefined();
    expect(miscount(coils, hex("0001 0000 0005 01 01 02 cd6b"))).toBe("the device sent 2 bytes for 19 coils, it must be 3");
  });
});

describe("miscount", () => {
  it.each([
    ["what was asked for", "0001 0000 0009 01 03 06 022b 0000 0064", undefined],
    ["an exception", "0001 0000 0003 01 83 02", undefined],
    ["too few", "0001 0000 0007 01 03 04 022b 0000", "the device sent 4 bytes for 3 holding registers, it must be 6"],
    ["too many", "0001 0000 000b 01 03 08 022b 0000 0064 0000", "the device sent 8 bytes for 3 holding registers, it must be 6"],
    ["none", "0001 0000 0003 01 03 00", "the device sent 0 bytes for 3 holding registers, it must be 6"],
  ])("judges %s", (_, bytes, words) => {
    const answer = hex(bytes);
    expect(wrongAnswer(request, answer)).toBeUndefined();
    expect(miscount(request, answer)).toBe(words);
  });
});

/** Conversations after MODBUS Application Protocol V1.1b3. The two groups of its example for function 20 are asked for one by one. */
describe("an example of the specification", () => {
  const text = (words: string) => Buffer.from(words).toString("hex");

  it.each([
    ["4", 4, 1, "14 07 06 0004 0001 0002", "14 06 05 06 0dfe 0020", "0dfe0020"],
    ["3", 3, 9, "14 07 06 0003 0009 0002", "14 06 05 06 33cd 0040", "33cd0040"],
  ])("reads records of file %s (6.14)", (_, file, start, asks, says, data) => {
    const sent = requestFrame(1, { unit: 1, functionCode: 20, start, count: 2, file });
    expect(sent).toEqual(hex(`0001 0000 000a 01 ${asks}`));
    expect(fence(sent)).toBe(true);
    const answer = hex(`0001 0000 0009 01 ${says}`);
    expect(wrongAnswer(sent, answer)).toBeUndefined();
    expect(miscount(sent, answer)).toBeUndefined();
    expect(dataOf(answer)).toEqual(hex(data));
  });

  it("reads both groups of records in no answer, because the sub-answers do not name their file", () => {
    const sent = requestFrame(1, { unit: 1, functionCode: 20, start: 1, count: 2, file: 4 });
    expect(wrongAnswer(sent, hex("0001 0000 000f 01 14 0c 05 06 0dfe 0020 05 06 33cd 0040"))).toContain("more than one group");
    expect(miscount(sent, hex("0001 0000 0007 01 14 04 03 06 0dfe"))).toBe("the device sent 4 bytes for 2 file records, it must be 6");
  });

  const company = `00 16 ${text("Company identification")}`;
  const revision = `02 05 ${text("V2.11")}`;
  it.each([
    [
      "in one answer",
      `00 00 03 ${company} 01 0f ${text("Product code XX")} ${revision}`,
      ["Company identification", "Product code XX", "V2.11"],
      undefined,
    ],
    [
      "in the first of two, which counts all objects",
      `ff 02 03 ${company} 01 0f ${text("Product code XX")}`,
      ["Company identification", "Product code XX"],
      2,
    ],
    ["in the second of two, which counts all objects", `00 00 03 ${revision}`, ["V2.11"], undefined],
    ["in the second of two, which counts its own", `00 00 01 ${revision}`, ["V2.11"], undefined],
  ])("reads the identification %s (6.21)", (_, rest, objects, next) => {
    const sent = identifyFrame(1, 1, 0);
    expect(sent).toEqual(hex("0001 0000 0005 01 2b 0e 01 00"));
    expect(fence(sent)).toBe(true);
    const body = hex(`01 2b 0e 01 01 ${rest}`);
    const answer = Buffer.concat([hex("0001 0000"), Buffer.of(0, body.length), body]);
    expect(wrongAnswer(sent, answer)).toBeUndefined();
    const identified = identifiedBy(answer);
    expect([[...(identified?.objects.values() ?? [])], identified?.next]).toEqual([objects, next]);
  });

  it("is cut, and gives no objects", () => {
    for (const rest of ["00 00 01", "00 00 01 00 05 41", "00 00 01 00 01 41 42", "00 00 02 00 01 41 01"]) {
      const body = hex(`01 2b 0e 01 01 ${rest}`);
      expect(identifiedBy(Buffer.concat([hex("0001 0000"), Buffer.of(0, body.length), body])), rest).toBeUndefined();
    }
  });
});
