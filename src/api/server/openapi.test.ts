import { Ajv2020 } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import { describe, expect, it } from "vitest";
import { DRIVERS } from "../../../drivers/index.ts";
import { DETAILS_TYPES } from "../../model/details.ts";
import { REASON_TYPES } from "../../model/reason-schema.ts";
import { SINK_TYPES } from "../../model/sink-details.ts";
import { SINKS } from "../../sinks/index.ts";
import { ROUTES } from "../routes/index.ts";
import { describeApi } from "./openapi.ts";
import { NO_EXAMPLES } from "./openapi-examples.ts";

interface Node {
  readonly [key: string]: Node;
}
const api = describeApi(ROUTES, "1.2.3", { sources: DRIVERS, sinks: SINKS }) as unknown as Node;
const schemas = api["components"]?.["schemas"] ?? {};
const operations = Object.values(api["paths"] ?? {}).flatMap((path) => Object.values(path));
const resolved = (node: Node | undefined): Node => {
  const reference = node?.["$ref"] as unknown as string | undefined;
  return reference === undefined
    ? (node ?? {})
    : reference
        .split("/")
        .slice(1)
        .reduce((at, key) => at[key] ?? {}, api);
};
const nameOf = (node: Node | undefined) => String(node?.["$ref"]).split("/").at(-1);

function* nodesIn(node: unknown): Generator<Node> {
  if (typeof node !== "object" || node === null) return;
  yield node as Node;
  for (const inner of Object.values(node)) yield* nodesIn(inner);
}

const ajv = new Ajv2020({ strict: false, allErrors: true });
(formats as unknown as (ajv: Ajv2020) => void)(ajv);
/** What is wrong with a value of a schema. */
const problemsOf = (schema: Node, value: unknown): string => {
  const validate = ajv.compile({ ...schema, components: api["components"] });
  return validate(value) ? "" : ajv.errorsText(validate.errors);
};

describe("the OpenAPI description", () => {
  it("names the types that a client works with", () =>
    expect(Object.keys(schemas)).toEqual(
      expect.arrayContaining([
        "DataSource",
        "DataSourcePage",
        "DataSourceCreate",
        "DataSourcePatch",
        "DataSourceDetails",
        "ModbusTcpDetails",
      ]),
    ));

  it("holds every reference", () => {
    const references = [...nodesIn(api)].filter((node) => typeof node["$ref"] === "string");
    expect(references.length).toBeGreaterThan(200);
    for (const node of references) expect(Object.keys(resolved(node)).length, nameOf(node)).toBeGreaterThan(0);
  });

  it("tells the variants of every union by a constant of each", () => {
    const unions = [...nodesIn(schemas)].filter((node) => node["oneOf"]);
    expect(unions.length).toBeGreaterThanOrEqual(14);
    for (const { oneOf, discriminator } of unions) {
      const name = String(discriminator?.["propertyName"]);
      const mapping = Object.entries(discriminator?.["mapping"] ?? {}) as unknown as [string, string][];
      expect(mapping.map(([, reference]) => reference)).toEqual(Object.values(oneOf ?? {}).map((variant) => variant["$ref"]));
      for (const [tag, reference] of mapping) expect(resolved({ $ref: reference } as never)["properties"]?.[name]?.["const"]).toBe(tag);
    }
    const tags = (name: string) => Object.keys(schemas[name]?.["discriminator"]?.["mapping"] ?? {});
    expect(tags("DataSourceDetails")).toEqual([...DETAILS_TYPES]);
    expect(tags("DataSourceDetailsCreate")).toEqual([...DETAILS_TYPES]);
    expect(tags("DataSinkDetails")).toEqual([...SINK_TYPES]);
    expect(tags("ReadoutFailure")).toEqual([...REASON_TYPES]);
  });

  it.each(Object.keys(ROUTES))("of %s has named bodies, described answers, and examples of both that are as described", (operation) => {
    const described = operations.find((one) => String(one["operationId"]) === operation);
    expect(described?.["summary"]).toBeTruthy();
    const request = described?.["requestBody"]?.["content"]?.["application/json"];
    if (request) {
      expect(schemas[String(nameOf(request["schema"]))]).toBeDefined();
      const examples = Object.values(request["examples"] ?? {});
      expect(examples.length).toBeGreaterThan(0);
      for (const { value } of examples) expect(problemsOf(request["schema"] ?? {}, value)).toBe("");
    }
    for (const [status, reference] of Object.entries(described?.["responses"] ?? {})) {
      const answer = resolved(reference);
      expect(String(answer["description"]).length, status).toBeGreaterThan(3);
      const body = answer["content"]?.["application/json"];
      if (!body) expect(["204", "304"], status).toContain(status);
      else {
        expect(schemas[String(nameOf(body["schema"]))], status).toBeDefined();
        expect(body["example"], `${status} of ${operation} has no example`).toBeDefined();
        expect(problemsOf(body["schema"] ?? {}, body["example"])).toBe("");
      }
    }
  });

  it("says which answers carry an ETag, and which requests take one", () => {
    const headers = (path: string, method: string, status: string) =>
      Object.keys(resolved(api["paths"]?.[path]?.[method]?.["responses"]?.[status])["headers"] ?? {});
    const parameters = (path: string, method: string) =>
      Object.values(api["paths"]?.[path]?.[method]?.["parameters"] ?? {}).map((one) => String(one["name"]));
    expect(headers("/v2/data-sources", "post", "201")).toEqual(["ETag", "Location"]);
    expect(headers("/v2/data-sources/{uuid}", "get", "200")).toEqual(["ETag"]);
    expect(headers("/v2/data-sources/{uuid}", "get", "304")).toEqual(["ETag"]);
    expect(headers("/v2/data-sources/{uuid}", "patch", "204")).toEqual(["ETag"]);
    expect(headers("/v2/data-sources", "get", "429")).toEqual(["Retry-After"]);
    expect(parameters("/v2/data-sources/{uuid}", "get")).toEqual(["uuid", "If-None-Match"]);
    expect(parameters("/v2/data-sources/{uuid}", "delete")).toEqual(["uuid", "If-Match"]);
  });

  it("has the same definition for one name in both directions, and refuses a schema without a name", () => {
    const route = { ...ROUTES.getSite, responses: { 200: ROUTES.getSite.responses[200].describe("another") } };
    expect(() => describeApi({ getSite: route }, "1", NO_EXAMPLES)).toThrow(/200 of getSite has no name/);
  });
});
