import fc from "fast-check";
import { expect, it } from "vitest";
import { createRequestBodies, requestBody } from "./plain.ts";

/** A chunk without security (OPC 10000-6, 6.7.2): header and channel, token, sequence header, body. */
function chunkOf(type: string, isFinal: string, body: Uint8Array): Buffer {
  const head = Buffer.alloc(24);
  head.write(`${type}${isFinal}`, "latin1");
  head.writeUInt32LE(head.length + body.length, 4);
  return Buffer.concat([head, body]);
}

it("gives the beginning of each request, however many chunks it has", () => {
  fc.assert(
    fc.property(fc.array(fc.array(fc.uint8Array({ maxLength: 10 }), { minLength: 1, maxLength: 5 }), { maxLength: 10 }), (messages) => {
      const bodyOf = createRequestBodies();
      expect(bodyOf(Buffer.from("HELF\0\0\0\0", "latin1"))).toBeUndefined();
      for (const parts of messages) {
        const found = parts.map((part, i) => bodyOf(chunkOf("MSG", i < parts.length - 1 ? "C" : "F", part)));
        expect(found[0]).toEqual(Buffer.from(parts[0] ?? []));
        expect(found.slice(1).every((body) => body === undefined)).toBe(true);
      }
    }),
  );
});

it("begins again after a message that was given up", () => {
  const bodyOf = createRequestBodies();
  bodyOf(chunkOf("MSG", "C", Buffer.of(1)));
  expect(bodyOf(chunkOf("MSG", "A", Buffer.of(2)))).toBeUndefined();
  expect(bodyOf(chunkOf("MSG", "F", Buffer.of(3)))).toEqual(Buffer.of(3));
});

it("finds the body of OpenSecureChannel behind its three strings, also those that are null", () => {
  const texts = [Buffer.from("policy"), undefined, Buffer.alloc(20)].map((text) => {
    const length = Buffer.alloc(4);
    length.writeInt32LE(text?.length ?? -1);
    return Buffer.concat([length, text ?? Buffer.alloc(0)]);
  });
  const chunk = Buffer.concat([Buffer.from("OPNF\0\0\0\0\0\0\0\0", "latin1"), ...texts, Buffer.alloc(8), Buffer.of(7, 8)]);
  expect(requestBody(chunk)).toEqual(Buffer.of(7, 8));
});
