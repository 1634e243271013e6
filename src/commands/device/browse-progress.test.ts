import { expect, it } from "vitest";
import { progressOn } from "./browse-progress.ts";

function terminal(isTTY: boolean) {
  const written: string[] = [];
  let nowMs = 0;
  const output = { isTTY, verbatim: (text: string | Uint8Array) => void written.push(String(text)) };
  const later = (ms: number) => {
    nowMs += ms;
  };
  return { written, later, progress: progressOn(output, () => nowMs) };
}

it("counts what was found, and says how far the driver has come where it finds nothing for long", () => {
  const { written, later, progress } = terminal(true);
  progress.tell(1, 0);
  later(250);
  progress.tell(12, 1);
  progress.tell(13, 1);
  later(250);
  progress.looked(40, 300);
  later(250);
  progress.looked(41, undefined);
  progress.end();
  const end = " … \x1b[K";
  expect(written).toEqual([
    `\r12 nodes, 2 levels${end}`,
    `\r13 nodes, 2 levels, 40 of 300 looked at${end}`,
    `\r13 nodes, 2 levels, 41 looked at${end}`,
    "\r\x1b[K",
  ]);
});

it("writes nothing where nobody watches, or it is over at once", () => {
  const file = terminal(false);
  file.later(1000);
  file.progress.tell(1, 0);
  file.progress.looked(1, 2);
  file.progress.end();
  const quick = terminal(true);
  quick.progress.tell(1, 0);
  quick.progress.end();
  expect([file.written, quick.written]).toEqual([[], []]);
});
