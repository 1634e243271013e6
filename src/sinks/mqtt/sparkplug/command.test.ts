import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readCommand } from "./command.ts";
import { encoded } from "./testing.ts";

const rebirth = { name: "Node Control/Rebirth", timestamp: 1_790_000_000_000, datatype: 11, booleanValue: true };
/** One of each field that a command may have, nested ones too. */
const full = {
  timestamp: 1_790_000_000_000,
  metrics: [
    rebirth,
    { alias: 4711, floatValue: 1.5 },
    { name: "temp", doubleValue: -2.5, isNull: false, metadata: { contentType: "a/b" } },
    { name: "set", stringValue: "x".repeat(300), properties: { keys: ["Quality"], values: [{ type: 3, intValue: 192 }] } },
    { name: "t", templateValue: { isDefinition: false, templateRef: "r", metrics: [{ name: "m", intValue: 5 }] } },
  ],
  seq: 3,
  uuid: "u",
  body: Buffer.from([1, 2, 3]),
};

describe("readCommand", () => {
  it("reads name, alias and boolean of each metric, and skips the rest", () => {
    expect(readCommand(encoded(full))).toEqual({
      metrics: [
        { name: "Node Control/Rebirth", alias: undefined, boolean: true },
        { name: undefined, alias: 4711, boolean: undefined },
        { name: "temp", alias: undefined, boolean: undefined },
        { name: "set", alias: undefined, boolean: undefined },
        { name: "t", alias: undefined, boolean: undefined },
      ],
      more: 0,
    });
  });

  it("never throws on a command cut at any byte, and takes no more from it than is there", () => {
    const bytes = encoded(full);
    for (let length = 0; length < bytes.length; length++) {
      const command = readCommand(bytes.subarray(0, length));
      if (command) expect(command.metrics.length).toBeLessThanOrEqual(full.metrics.length);
    }
    // The message ends between two fields only in these places.
    const whole = Array.from({ length: bytes.length + 1 }, (_, length) => readCommand(bytes.subarray(0, length))).filter(Boolean);
    expect(whole.length).toBeLessThan(12);
  });

  it("never throws on any bytes, nor on a command with any byte changed", () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => void readCommand(bytes)));
    const bytes = encoded(full);
    fc.assert(
      fc.property(fc.nat(bytes.length - 1), fc.nat(255), (at, byte) => {
        const changed = Buffer.from(bytes);
        changed[at] = byte;
        readCommand(changed);
      }),
    );
  });

  it.each([
    ["a length beyond the end", [0x12, 0xff, 0xff, 0xff, 0xff, 0x0f]],
    ["a varint of eleven bytes", [0x08, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01]],
    ["a length of 2^63", [0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]],
    ["the field 0", [0x02, 0x00]],
    ["a group", [0x0b, 0x0c]],
    ["metrics that are numbers", [0x10, 0x01]],
    ["text", [...Buffer.from("ONLINE")]],
  ])("takes no command from %s", (_, bytes) => {
    expect(readCommand(Uint8Array.from(bytes))).toBeUndefined();
  });

  it("keeps a bounded number of metrics and of bytes of a name", () => {
    const many = encoded({ metrics: Array.from({ length: 1500 }, () => ({ name: "n".repeat(1000) })) });
    const command = readCommand(many);
    expect(command?.metrics).toHaveLength(1000);
    expect(command?.more).toBe(500);
    expect(command?.metrics[0]?.name).toBe("n".repeat(256));
  });
});
