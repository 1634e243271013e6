import { expect, test } from "vitest";
import * as z from "zod";
import { uuidSchema } from "../model/uuid.ts";
import { acceptRecords } from "./records.ts";

const schema = z.object({ uuid: uuidSchema, collector: uuidSchema, n: z.int() });
const [a, b, c, me, other] = [1, 2, 3, 4, 5].map((n) => `${n}0000000-0000-4000-8000-000000000000`) as [
  string,
  string,
  string,
  string,
  string,
];
const accept = (received: readonly unknown[], previous: readonly z.output<typeof schema>[] = []) =>
  acceptRecords({ what: "data source", received, schema, previous, collector: me, owner: (record) => record.collector });

test("one bad record is kept out and named, its last good one stays, the others are taken", () => {
  const good = { uuid: b, collector: me, n: 2 };
  const received = [{ uuid: a, collector: me, n: "1" }, good, { uuid: c, collector: me }, null, "text", { uuid: {}, n: 1 }];
  const last = { uuid: a, collector: me, n: 7 };
  const { records, warnings } = accept(received, [last]);
  expect(records).toEqual([last, good]);
  expect(warnings).toEqual([
    expect.stringMatching(new RegExp(`^data source ${a}: n: .*; its last good configuration stays$`)),
    expect.stringMatching(new RegExp(`^data source ${c}: n: .*; it is left out$`)),
    expect.stringMatching(/^data source number 4 of the list: the record: /),
    expect.stringMatching(/^data source number 5 of the list: /),
    expect.stringMatching(/^data source number 6 of the list: uuid: /),
  ]);
});

test("records of another collector are dropped and counted; one that stands twice counts once; an absent one is gone", () => {
  const mine = { uuid: a, collector: me.toUpperCase(), n: 1 };
  const { records, warnings } = accept([{ uuid: b, collector: other, n: 1 }, mine, { ...mine, n: 2 }], [{ uuid: c, collector: me, n: 3 }]);
  expect(records).toEqual([{ uuid: a, collector: me, n: 2 }]);
  expect(warnings).toEqual(["1 data source of another collector in the API's answer: left out"]);
});

test("the warnings of a list that is wrong throughout are bounded", () => {
  const { records, warnings } = accept(Array.from({ length: 1000 }, () => ({})));
  expect(records).toEqual([]);
  expect(warnings).toHaveLength(101);
  expect(warnings.at(-1)).toBe("900 more data sources do not validate");
});
