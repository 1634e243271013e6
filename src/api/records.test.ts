import { expect, test } from "vitest";
import * as z from "zod";
import { textsOf } from "../model/testing/warnings.ts";
import { uuidSchema } from "../model/uuid.ts";
import { acceptRecords, acceptSecrets, judgeRecord } from "./records.ts";

const schema = z.object({ uuid: uuidSchema, collector: uuidSchema, n: z.int() });
const [a, b, c, me, other] = [1, 2, 3, 4, 5].map((n) => `${n}0000000-0000-4000-8000-000000000000`) as [
  string,
  string,
  string,
  string,
  string,
];
const accept = (received: readonly unknown[], previous: readonly z.output<typeof schema>[] = []) =>
  acceptRecords({
    what: "data source",
    received: received.map((item) => judgeRecord(item, { schema, owner: (record) => record.collector })),
    previous,
    collector: me,
  });

test("one bad record is kept out and named, its last good one stays, the others are taken", async () => {
  const good = { uuid: b, collector: me, n: 2 };
  const received = [{ uuid: a, collector: me, n: "1" }, good, { uuid: c, collector: me }, null, "text", { uuid: {}, n: 1 }];
  const last = { uuid: a, collector: me, n: 7 };
  const { records, warnings } = await accept(received, [last]);
  expect(records).toEqual([last, good]);
  expect(textsOf(warnings)).toEqual([
    expect.stringMatching(new RegExp(`^data source ${a}: n: .*; its last good configuration stays$`)),
    expect.stringMatching(new RegExp(`^data source ${c}: n: .*; it is left out$`)),
    expect.stringMatching(/^data source number 4 of the list: the record: /),
    expect.stringMatching(/^data source number 5 of the list: /),
    expect.stringMatching(/^data source number 6 of the list: uuid: /),
    "3 data sources of the list have no usable uuid; nothing is removed: 0 that the list does not name stay",
  ]);
});

test("records of another collector are dropped and counted; of one listed twice the first counts; an absent one is gone", async () => {
  const mine = { uuid: a, collector: me.toUpperCase(), n: 1 };
  const { records, warnings } = await accept(
    [{ uuid: b, collector: other, n: 1 }, mine, { ...mine, n: 2 }],
    [{ uuid: c, collector: me, n: 3 }],
  );
  expect(records).toEqual([{ uuid: a, collector: me, n: 1 }]);
  expect(textsOf(warnings)).toEqual([
    `data source ${a} is listed 2 times; its first usable record is used`,
    "1 data source of another collector in the API's answer: left out",
  ]);
});

test("many records with the same reason are one line, and the lines of different reasons are bounded", async () => {
  const { records, warnings, leftOut } = await accept(Array.from({ length: 1000 }, () => ({})));
  expect([records, leftOut]).toEqual([[], 1000]);
  expect(textsOf(warnings)).toEqual([
    expect.stringMatching(/^1000 data sources \(number 1 of the list, number 2 of the list, number 3 of the list, …\): uuid: /),
    expect.stringContaining("1000 data sources of the list have no usable uuid"),
  ]);
  const different = await acceptRecords({
    what: "data source",
    received: Array.from({ length: 1000 }, (_, n) => ({ uuid: undefined, owner: undefined, why: `reason ${n}` })),
    previous: [],
    collector: me,
  });
  expect(different.warnings).toHaveLength(102);
  expect(different.warnings[100]?.text).toBe("900 more data sources do not validate");
});

test("with a record that has no usable uuid nothing is removed; what moved to another collector is", async () => {
  const [first, second] = [a, b].map((uuid) => ({ uuid, collector: me, n: 1 })) as [z.output<typeof schema>, z.output<typeof schema>];
  const moved = { uuid: b, collector: other, n: "1" };
  const { records, unidentified, isUnusable } = await accept([moved, { n: 1 }, { uuid: c, collector: me, n: 1 }], [first, second]);
  expect(records.map(({ uuid }) => uuid)).toEqual([c, a]);
  expect([unidentified, isUnusable]).toEqual([1, false]);
  expect([(await accept([{}])).isUnusable, (await accept([])).isUnusable, (await accept([moved])).isUnusable]).toEqual([
    true,
    false,
    false,
  ]);
});

test("of a uuid that is listed several times the first record that validates is used, wherever it stands", async () => {
  const bad = { uuid: a, collector: me, n: "1" };
  const good = { uuid: a, collector: me, n: 2 };
  expect((await accept([bad, good, { ...good, n: 3 }, bad], [{ ...good, n: 9 }])).records).toEqual([good]);
  expect((await accept([{ ...good, collector: other }, good])).records).toEqual([good]);
});

test("secrets are taken record by record: a bad one keeps what was known, one without a usable uuid removes nothing", async () => {
  const known = { [a]: { password: "old-a" }, [b]: { password: "old-b" } };
  expect(acceptSecrets({ [c]: { password: "new" } }, known)).toEqual({
    secrets: { [c]: { password: "new" } },
    warnings: [],
    unidentified: 0,
    isUnusable: false,
  });
  const { secrets, warnings } = acceptSecrets({ [a]: { password: 7 }, press: { password: "Canary" }, [c]: { password: "new" } }, known);
  expect(secrets).toEqual({ ...known, [c]: { password: "new" } });
  expect(warnings).toHaveLength(2);
  expect(textsOf(warnings).join()).not.toContain("Canary");
  const lettered = "a0000000-0000-4000-8000-000000000000";
  const twice = { [lettered.toUpperCase()]: { password: "1" }, [lettered]: { password: "2" } };
  expect(acceptSecrets(twice, {})).toMatchObject({ secrets: { [lettered]: { password: "1" } }, warnings: [{ code: "records_repeated" }] });
  expect(acceptSecrets({ press: {} }, known).isUnusable).toBe(true);
  expect(acceptSecrets({}, known)).toMatchObject({ secrets: {}, isUnusable: false });
});
