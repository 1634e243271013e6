import { expect, test } from "vitest";
import type { Owned } from "./file-owners.ts";
import { assignFiles } from "./match-files.ts";

const PRESS = { uuid: "0b5c1f9e-6a52-4f7e-9a43-1f0c2f1d4a11", name: "press-1" };
const OVEN = { uuid: "1c6d2fae-7b63-4a8f-8b54-2f1d3f2e5b22", name: "Ofen ü/2" };
const TWIN = { uuid: "2d7e3fbf-8c74-4b9a-9c65-3f2e4f3f6c33", name: "press-1" };

const owned = (more: Partial<Owned> = {}): Owned => ({ file: "press-1.csv", namesakes: [], ...more });
const given = (sources: readonly (typeof PRESS)[], owners: readonly (readonly [string, Owned])[], files = ["press-1.csv"]) =>
  Object.fromEntries(assignFiles(files, sources, new Map(owners)).files);

test("a file is for the source whose uuid or name it has", () => {
  const found = assignFiles([`${OVEN.uuid.toUpperCase()}.YAML`, "press-1.csv", "Press-1.csv"], [PRESS, OVEN], new Map());
  expect(Object.fromEntries(found.files)).toEqual({ [OVEN.uuid]: [`${OVEN.uuid.toUpperCase()}.YAML`], [PRESS.uuid]: ["press-1.csv"] });
  expect([found.unmatched, found.problems]).toEqual([["Press-1.csv"], []]);
});

test("a name never becomes a path, and may hold the same letters composed in another way", () => {
  expect(given([{ ...OVEN, name: "../press-1" }], [])).toEqual({});
  expect(given([{ ...OVEN, name: "Ofen ü" }], [], ["Ofen u\u0308.csv"])).toEqual({ [OVEN.uuid]: ["Ofen u\u0308.csv"] });
});

test("a file that fits two is its owner's, in whichever format it comes, or nobody's", () => {
  expect(given([PRESS, TWIN], [])).toEqual({});
  expect(given([PRESS, TWIN], [[TWIN.uuid, owned()]])).toEqual({ [TWIN.uuid]: ["press-1.csv"] });
  for (const file of ["press-1.CSV", "press-1.yaml"])
    expect(given([PRESS, TWIN], [[PRESS.uuid, owned()]], [file])).toEqual({ [PRESS.uuid]: [file] });
  expect(assignFiles(["press-1.csv"], [PRESS, TWIN], new Map([[PRESS.uuid, owned()]])).namesakes).toEqual(
    new Map([[PRESS.uuid, [TWIN.uuid]]]),
  );
});

test("while its owner is not configured, a source that was there beside the owner does not get it, and it says so", () => {
  const owners = [[PRESS.uuid, owned({ namesakes: [TWIN.uuid], awaySinceMs: 0 })]] as const;
  expect(given([TWIN], owners)).toEqual({});
  const found = assignFiles(["press-1.csv"], [TWIN], new Map(owners));
  expect(found.problems).toEqual([
    {
      file: "press-1.csv",
      source: TWIN.uuid,
      message: `fits press-1 (${TWIN.uuid}); it is kept for ${PRESS.uuid}, which had it and is not configured now; name the file by the uuid of the one that is meant`,
    },
  ]);
  expect(found.unmatched).toEqual([]);
});

test("a source that was created again under the name takes the file of the one that was removed", () => {
  expect(given([TWIN], [[PRESS.uuid, owned({ awaySinceMs: 0 })]])).toEqual({ [TWIN.uuid]: ["press-1.csv"] });
});

test("a source that has another name now leaves its file to the one that has the name", () => {
  const renamed = { ...PRESS, name: "press-old" };
  expect(given([renamed, TWIN], [[PRESS.uuid, owned({ namesakes: [TWIN.uuid] })]])).toEqual({ [TWIN.uuid]: ["press-1.csv"] });
});

test("who uses a file now comes before who used it last", () => {
  const owners = [
    [PRESS.uuid, owned({ awaySinceMs: 0 })],
    [TWIN.uuid, owned()],
  ] as const;
  expect(given([PRESS, TWIN], owners)).toEqual({ [TWIN.uuid]: ["press-1.csv"] });
});
