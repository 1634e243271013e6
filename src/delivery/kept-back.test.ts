import { expect, test } from "vitest";
import type { Log } from "../model/context.ts";
import type { SourceReport } from "../model/report.ts";
import { KeptBack } from "./kept-back.ts";

const sources = ["press-1", "press-2"].map((name) => ({ uuid: `s-${name}`, name })) as unknown as readonly SourceReport[];
const logged: string[] = [];
const log = { warn: (_fields: object, words: string) => void logged.push(words) } as unknown as Log;

test("what a bound of memory keeps back is a warning with the size and the setting, and one line each time it begins", () => {
  const kept = new KeptBack({ keepsAll: false, maxBytes: 16 * 2 ** 20, setting: "max_waiting of the sink hosted" }, log);
  kept.describe(sources);
  const bytes = new Map([
    ["s-press-2", 2 ** 20],
    ["s-press-1", 5 * 2 ** 20],
  ]);
  const words =
    "the newest readout of press-1 (5.0 MiB) and of 1 more source is not shown: at most 16.0 MiB wait in memory for this sink, and one readout more; max_waiting of the sink hosted raises it";
  expect([kept.warning(new Map()), kept.warning(bytes), kept.warning(bytes)].map((one) => one?.text)).toEqual([undefined, words, words]);
  expect(logged).toEqual([words]);
  kept.warning(new Map());
  kept.warning(bytes);
  expect(logged).toEqual([words, words]);
});
