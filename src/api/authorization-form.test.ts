import { expect, test } from "vitest";
import { AuthorizationForm, type KeyForm } from "./authorization-form.ts";

/** What a server is sent for each path, which takes the key there in `takes`, or in no form. */
function asker(takes: (path: string) => KeyForm | undefined) {
  const form = new AuthorizationForm();
  return (path: string, key = "k"): readonly KeyForm[] => {
    const sent: KeyForm[] = [];
    for (
      let as: KeyForm | undefined = form.first(path, key);
      as !== undefined;
      as = form.answered(path, as, takes(path) === as ? 200 : 401)
    )
      sent.push(as);
    return sent;
  };
}

test.each<KeyForm>(["bare", "bearer"])(
  "a server that takes %s and answers 401 for what it does not have is asked in that form alone",
  (taken) => {
    const ask = asker((path) => (path.startsWith("/v2") ? taken : undefined));
    expect(ask("/ext/v1")).toEqual(["bare", "bearer"]);
    expect(ask("/v2/data-sources")).toEqual(taken === "bare" ? ["bare"] : ["bare", "bearer"]);
    for (const path of ["/ext/v1", "/v2/data-sinks", "/ext/v1", "/v2/data-sources"]) expect(ask(path)).toEqual([taken]);
  },
);

test("a path that is refused before the key is looked at settles nothing, unless the other form had a 401 there", () => {
  const form = new AuthorizationForm();
  expect([form.first("/ext/v1", "k"), form.answered("/ext/v1", "bare", 404)]).toEqual(["bare", undefined]);
  expect([form.first("/v2", "k"), form.answered("/v2", "bare", 401), form.answered("/v2", "bearer", 403)]).toEqual([
    "bare",
    "bearer",
    undefined,
  ]);
  expect([form.first("/v2", "k"), form.first("/ext/v1", "k")]).toEqual(["bearer", "bearer"]);
});

test("a key that is refused in both forms is sent once a request, in each form in its turn, and another key begins from the start", () => {
  let taken: KeyForm | undefined;
  const ask = asker(() => taken);
  expect([ask("/v2"), ask("/v2"), ask("/v2"), ask("/v2")]).toEqual([["bare", "bearer"], ["bare"], ["bearer"], ["bare"]]);
  expect(ask("/v2", "other")).toEqual(["bare", "bearer"]);
  taken = "bearer";
  expect([ask("/v2", "other"), ask("/v2", "other"), ask("/v2", "other")]).toEqual([["bare"], ["bearer"], ["bearer"]]);
});

test("a server that takes another form from now on is found out", () => {
  let taken: KeyForm | undefined = "bare";
  const ask = asker(() => taken);
  expect(ask("/v2")).toEqual(["bare"]);
  taken = "bearer";
  expect([ask("/v2"), ask("/v2")]).toEqual([["bare", "bearer"], ["bearer"]]);
  taken = undefined;
  expect([ask("/v2"), ask("/v2")]).toEqual([["bearer", "bare"], ["bearer"]]);
});

test("what is remembered is bounded", () => {
  const ask = asker(() => undefined);
  for (let n = 0; n < 1000; n++) expect(ask(`/v2/${n}`)).toHaveLength(2);
});
