import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { anyText } from "../../test/support/any-text.ts";
import { browseBody, fence, helloBody, lineLength, lineOf, openBody, readBody, resolveBody, serversBody, withinMsOf } from "./frames.ts";

const nasty = fc.oneof(
  anyText(),
  fc.constantFrom('","request":"write"', '"request":', "\n", '\\"request":"read"', "}\n{", '\\","request":"write","x":"'),
);

describe("fence", () => {
  it("passes the six requests that read, whatever is in them", () => {
    fc.assert(
      fc.property(fc.array(nasty, { maxLength: 5 }), fc.nat(), nasty, (items, id, text) => {
        for (const body of [
          helloBody(65_536),
          serversBody(1),
          openBody({ protocol: "OPC_DA", server_name: text }, 1),
          openBody({ protocol: "PVI", path: text }, 1),
          browseBody(items, text, 5, 1),
          resolveBody(items, 1),
          readBody(text, items, 1),
        ])
          expect(fence(lineOf(id, body))).toBe(true);
      }),
    );
  });

  it.each([
    '{"id":1,"request":"write","items":["a"],"values":[1]}\n',
    '{"id":1,"request":"reads"}\n',
    '{"id":1,"request":"read","request":"write"}\n',
    '{"id":1,"request":"read"}\n{"id":2,"request":"read"}\n',
    '{"id":1,"request":"read"}',
    '{"request":"read","id":1}\n',
    '{"id":"1","request":"read"}\n',
    '[{"id":1,"request":"read"}]\n',
    "",
    "\n",
  ])("refuses %j", (line) => expect(fence(Buffer.from(line))).not.toBe(true));

  it("lets no other request through that a changed line could be", () => {
    const line = lineOf(7, readBody("1", ["Press.Force", 'a","request":"write'], 2400));
    fc.assert(
      fc.property(fc.nat(line.length - 1), fc.nat(255), (at, byte) => {
        const changed = Buffer.from(line);
        changed[at] = byte;
        if (fence(changed) !== true) return;
        const text = changed.toString("utf8");
        let fields: { readonly request?: unknown } = {};
        try {
          fields = JSON.parse(text);
        } catch {
          return;
        }
        expect(["hello", "servers", "open", "browse", "resolve", "read"]).toContain(fields.request);
      }),
      { numRuns: 2000 },
    );
  });
});

describe("lineLength", () => {
  const length = (text: string, start = 0, most = 100) => lineLength(Buffer.from(text, "latin1"), start, most);

  it("finds the end of a line, and waits for it", () => {
    expect(length('{"id":1}\n{"id":2}\n')).toBe(9);
    expect(length('{"id":1}\n{"id":2}\n', 9)).toBe(9);
    expect(length('{"id":1')).toBeUndefined();
  });

  it("says of what is no line what it may be", () => {
    expect(length("\x15\x03\x03")).toMatch(/answers with TLS: set security/);
    expect(length("HTTP/1.1 400 Bad Request")).toBe('"HTTP/1.1 400 Bad" where a line of JSON begins');
    expect(length(`{${"a".repeat(100)}`)).toBe("a line of more than 100 bytes");
    expect(length(`{${"a".repeat(100)}\n`)).toBe("a line of more than 100 bytes");
    expect(length(`{${"a".repeat(98)}\n`)).toBe(100);
  });
});

it("gives the server behind the gateway less time than the gateway, and always some", () => {
  expect([3000, 500, 20, 1].map(withinMsOf)).toEqual([2400, 400, 16, 1]);
});
