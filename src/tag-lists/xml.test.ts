import fc from "fast-check";
import { expect, test } from "vitest";
import { readXml, XML_LIMITS } from "./xml.ts";

const LIMITS = { depth: 4, attributes: 3, elements: 100, seconds: 5 };

async function read(text: string, options = {}): Promise<string> {
  const seen: string[] = [];
  const fault = await readXml(
    [text],
    {
      open(name, attributes, line) {
        seen.push(`<${name} ${[...attributes].map(([key, value]) => `${key}=${value}`).join(" ")}@${line}`);
        return name === "stop" ? "stop" : undefined;
      },
      text: (part) => void seen.push(part),
      close: (name) => void seen.push(`>${name}`),
    },
    { limits: LIMITS, ...options },
  );
  return fault ? fault.fault : seen.join("|");
}

test("elements, attributes, texts and lines, without prefixes", async () => {
  expect(await read('<?xml version="1.0"?>\n<x:a k="1" x:j="&lt;&#65;">t\n<b/><![CDATA[<c>]]></x:a>')).toBe(
    "<a k=1 j=<A@2|t\n|<b @3|>b|<c>|>a",
  );
  expect(await read("<a><stop/><<<<")).toBe("<a @1|<stop @1");
});

const LAUGHS = `<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]><l>&b;</l>`;

test.each([
  ["billion laughs", LAUGHS, "line 1: it has a document type (DOCTYPE), which no export has and which is refused"],
  ["an entity of a file", '<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>', "DOCTYPE"],
  ["an entity that is not XML's", "<a>&nbsp;</a>", "line 1: Invalid character entity"],
  ["elements that lie too deep", "<a><a><a><a><a>", "line 1: elements lie in each other more than 4 deep"],
  ["too many attributes", '<a b="" c="" d="" e=""/>', "line 1: an element has more than 3 attributes"],
  ["too many elements", `<a>${"<b/>".repeat(100)}</a>`, "line 1: it has more than 100 elements"],
  ["an element that stays open", "<a>\n<b></b>", "line 2: Unclosed root tag"],
  ["an element that closes another", "<a><b></a>", "Unexpected close tag"],
  ["text that is not XML", "name;address\n", "Non-whitespace before first tag"],
  ["nothing", "", "it has no element"],
  // sax calls `hasOwnProperty` of the object that holds the attributes.
  ["an attribute that hides a function of the parser", '<a hasOwnProperty="" b=""/>', "it is not well-formed XML"],
  ["a name without an end", `<${"a".repeat(200_000)}`, "Max buffer length exceeded"],
  ["an attribute without an end", `<a b="${"a".repeat(200_000)}`, "Max buffer length exceeded"],
  ["a document type without an end", `<!DOCTYPE ${"a".repeat(200_000)}`, "Max buffer length exceeded"],
])("%s is a fault", async (_, text, words) => {
  expect(await read(text)).toContain(words);
});

test("a name that JavaScript's objects have is a name like others", async () => {
  expect(await read('<__proto__ __proto__="1" constructor="2"/>')).toBe("<__proto__ __proto__=1 constructor=2@1|>__proto__");
});

test("time ends the reading", async () => {
  let clock = 0;
  expect(await read("<a/>", { now: () => (clock += 6000) })).toContain("reading took longer than 5 s");
});

test("an error of the handler is thrown", async () => {
  const handler = { open: () => undefined, text: () => {}, close: () => Promise.reject };
  const broken = { ...handler, open: (): undefined => fail("mine") };
  await expect(readXml(["<a/>"], broken)).rejects.toThrow("mine");
});

const fail = (message: string): never => {
  throw new Error(message);
};

test("any text, in any pieces, ends in elements or in a fault", async () => {
  const mark = fc.constantFrom(
    "<",
    ">",
    "/",
    "a",
    '"',
    "=",
    " ",
    "&",
    ";",
    "#",
    "!",
    "[",
    "]",
    "-",
    "?",
    "CDATA[",
    "DOCTYPE",
    "\0",
    "\ud800",
  );
  const text = fc.array(mark, { maxLength: 40 });
  await fc.assert(
    fc.asyncProperty(text, async (parts) => {
      let open = 0;
      const handler = { open: () => void open++ as undefined, text: () => {}, close: () => void open-- };
      const fault = await readXml(parts, handler, { limits: XML_LIMITS });
      if (!fault) expect(open).toBe(0);
    }),
    { numRuns: 500 },
  );
});
