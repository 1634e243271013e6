import { expect, test } from "vitest";
import { DescribedSources } from "../../delivery/described-sources.ts";
import type { ToDelivery } from "../../delivery/messages.ts";
import type { Layout } from "../../model/layout.ts";
import type { SourceReport } from "../../model/report.ts";
import { Describer } from "./describer.ts";

const layoutOf = (source: string, variables: number, comment = ""): Layout => ({
  source: { uuid: source, name: source },
  variables: Array.from({ length: variables }, (_, i) => ({
    uuid: `${source}-${i}`,
    name: `v${i}`,
    address: String(i),
    type: { scalar: "uint16" },
    unit: null,
    comment,
    exploration: false,
  })),
});
const reportOf = (uuid: string, layout: Layout | null, since = "") => ({ uuid, layout, since }) as SourceReport;

/** A describer and what a worker makes of its messages, as structured clones. */
function pair() {
  let sources: readonly SourceReport[] = [];
  let worker = new DescribedSources();
  const sizes: number[] = [];
  const describer = new Describer(
    (message: ToDelivery) => {
      const copy = structuredClone(message);
      if (copy.type === "layout") {
        sizes.push(copy.variables.length);
        worker.addPiece(copy);
      } else if (copy.type === "sources") worker.describe(copy.sources);
    },
    () => sources,
  );
  return {
    sizes,
    set(now: readonly SourceReport[]) {
      sources = now;
      describer.describe();
    },
    restart() {
      worker = new DescribedSources();
      describer.reset();
      describer.describe();
    },
    known: () => worker.all(),
  };
}

test("layouts come in pieces and arrive whole; one that is the same is not sent again", async () => {
  const { set, known, sizes } = pair();
  const sources = [reportOf("a", layoutOf("a", 1203)), reportOf("b", layoutOf("b", 0)), reportOf("c", null)];
  set(sources);
  await expect.poll(known).toEqual(sources);
  expect(sizes).toEqual([500, 500, 203, 0]);
  const later = sources.map((source) => ({ ...source, since: "later" }));
  set(later);
  // At once, because nothing has to cross first.
  expect(known()).toEqual(later);
  expect(sizes).toHaveLength(4);
});

test("what changes in the middle of a round, and a worker that is started again in it, ends with the sources of the moment", async () => {
  const { set, restart, known } = pair();
  const before = [reportOf("a", layoutOf("a", 40_000)), reportOf("b", layoutOf("b", 40_000))];
  set(before);
  restart();
  const after = [reportOf("b", layoutOf("b", 700, "changed")), reportOf("d", layoutOf("d", 3))];
  set(after);
  restart();
  await expect.poll(known, { timeout: 20_000 }).toEqual(after);
});
