import { expect, test } from "vitest";
import { createYielder } from "../base/timer.ts";
import { DATA_SOURCE_FORM } from "./configuration-lists.ts";
import { ListPages } from "./list-pages.ts";

const read = (page: unknown) => new ListPages(DATA_SOURCE_FORM).read(JSON.stringify(page), createYielder());

test("a page whose metadata leaves out next_cursor is the last one", async () => {
  expect(await read({ data: [], metadata: {} })).toMatchObject({ records: [], nextCursor: null });
});

test.each([[{ data: [] }], [{ data: [], metadata: null }], [{ data: [], metadata: { next_cursor: 7 } }]])("%j is no page", async (page) => {
  expect(await read(page)).toEqual({ wrong: expect.stringMatching(/^metadata/) as unknown });
});
