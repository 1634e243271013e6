import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

/** Rooms that may open, take and look up: what goes over them is judged by the policy, has a deadline and can be recorded. */
const ROOMS = /^(drivers\/lib|src\/sinks\/lib|src\/api|src\/os|src\/lib)\//;

/** Files outside with a reason of their own. */
const EXCEPTIONS: Readonly<Record<string, string>> = {
  "drivers/plugin/samples/line-plugin.ts": "an example of a program of somebody else's: it connects to its own device",
};

const MODULES = "net|tls|http|https|http2|dgram|dns|dns/promises";
const STATIC = new RegExp(`^(?:import|export)\\s+(?!type\\b)([^;]*?)\\s+from "node:(?:${MODULES})"`, "gm");
const LOADED = new RegExp(`\\b(?:import|require|getBuiltinModule)\\(\\s*"(?:node:)?(?:${MODULES})"`);

/** True: the file takes more of these modules than types. */
function takesValues(text: string): boolean {
  for (const [, clause = ""] of text.matchAll(STATIC)) {
    const names = /^\{(.*)\}$/s.exec(clause.trim())?.[1];
    if (names === undefined) return true;
    if (names.split(",").some((name) => name.trim() !== "" && !name.trim().startsWith("type "))) return true;
  }
  return LOADED.test(text);
}

const isProduction = (file: string): boolean =>
  /\.tsx?$/.test(file) && !/\.test\.ts$|\/testing(\/|\.ts$)|\/simulator(-[a-z]+)?\.ts$/.test(file);
const files = ["src", "drivers"]
  .flatMap((top) => readdirSync(top, { recursive: true, encoding: "utf8" }).map((file) => `${top}/${file}`))
  .filter(isProduction);

describe("sockets stand behind a door", () => {
  it("finds the program", () => expect(files.length).toBeGreaterThan(300));

  it("so that only these rooms open, take and look up", () => {
    const outside = files.filter((file) => !ROOMS.test(file) && takesValues(readFileSync(file, "utf8")));
    expect(outside.filter((file) => !(file in EXCEPTIONS))).toEqual([]);
    // An exception that is used no more is taken out.
    expect(Object.keys(EXCEPTIONS).filter((file) => !outside.includes(file))).toEqual([]);
  });

  it.each([
    ['import net from "node:net";', true],
    ['import * as net from "node:net";', true],
    ['import { connect } from "node:net";', true],
    ['import { type Socket, connect } from "node:tls";', true],
    ['import {\n  type Socket,\n  connect,\n} from "node:tls";', true],
    ['export { createServer } from "node:http";', true],
    ['const net = await import("node:net");', true],
    ['const net = process.getBuiltinModule("net");', true],
    ['import type { Socket } from "node:net";', false],
    ['import { type Socket } from "node:net";', false],
    ['import { readFile } from "node:fs";\nimport type net from "node:net";', false],
  ])("%s takes a value: %s", (text, takes) => expect(takesValues(text)).toBe(takes));
});
