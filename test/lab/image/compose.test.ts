import { readFileSync } from "node:fs";
import path from "node:path";
import { Ajv2019 } from "ajv/dist/2019.js";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { policySchema } from "../../../src/model/policy.ts";

const FOLDER = path.resolve(import.meta.dirname, "../../../config/container");
const read = (file: string): string => readFileSync(file, "utf8");

/** compose_spec.json as Debian's docker-compose 1.29.2 has it, unchanged: copyright 2014-2015 Docker Inc, Apache-2.0. */
const schema = JSON.parse(read(path.join(import.meta.dirname, "compose-spec.json")), (key, value: unknown) =>
  // Names of an older draft of JSON Schema, which the validator would look for.
  key === "$schema" || (key === "id" && typeof value === "string") ? undefined : value,
);

test("the compose file keeps to the schema of the Compose Specification, and each service to least rights", () => {
  const isValid = new Ajv2019({ strict: false, validateFormats: false }).compile(schema);
  const compose = parse(read(path.join(FOLDER, "compose.yaml")));
  expect(isValid(compose), JSON.stringify(isValid.errors)).toBe(true);
  const { collector } = compose.services;
  expect(isValid({ services: { collector: { ...collector, read_only: "so" } } })).toBe(false);
  expect(isValid({ services: { collector: { ...collector, no_such_key: 1 } } })).toBe(false);
  for (const service of Object.values(compose.services))
    expect(service).toMatchObject({ read_only: true, cap_drop: ["ALL"], security_opt: ["no-new-privileges:true"] });
});

test("the policy next to it opens nothing but this machine", () => {
  expect(policySchema.parse(parse(read(path.join(FOLDER, "policy.yaml"))))).toMatchObject({
    sources: { loopback: true },
    sinks: { loopback: true },
  });
});
