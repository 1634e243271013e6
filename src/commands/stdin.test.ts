import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { StoppedError, UsageError } from "./io.ts";
import { readStdin } from "./stdin.ts";

const quiet = new AbortController().signal;
const ended = (...chunks: string[]) => {
  const stdin = new PassThrough();
  for (const chunk of chunks) stdin.write(chunk);
  stdin.end();
  return stdin;
};

test("all that comes is read, or no more than the first line", async () => {
  expect((await readStdin({ stdin: ended("a\n", "b"), signal: quiet }, 10, { what: "it" })).toString()).toBe("a\nb");
  const open = new PassThrough();
  open.write("secret\nmore");
  expect((await readStdin({ stdin: open, signal: quiet }, 20, { what: "it", untilLine: true })).toString()).toBe("secret\nmore");
  expect((await readStdin({ stdin: ended(), signal: quiet }, 10, { what: "it" })).length).toBe(0);
});

test("what is too long is refused before its end comes", async () => {
  const open = new PassThrough();
  open.write("0123456789");
  open.write("0");
  const reading = readStdin({ stdin: open, signal: quiet }, 10, { what: "the file" });
  await expect(reading).rejects.toEqual(new UsageError("the file is longer than 10 bytes"));
});

test("who stops it is not kept waiting for an end that does not come", async () => {
  const stop = new AbortController();
  const reading = readStdin({ stdin: new PassThrough(), signal: stop.signal }, 10, { what: "it" });
  setTimeout(() => stop.abort(new Error("SIGINT")), 10);
  await expect(reading).rejects.toBeInstanceOf(StoppedError);
});
