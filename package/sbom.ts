import { createHash } from "node:crypto";
import type { EmbeddedLibrary } from "./embedded.ts";
import type { Component } from "./inventory.ts";

export interface Product {
  readonly name: string;
  readonly version: string;
  /** Debian's name of the architecture. */
  readonly architecture: string;
  /** Seconds of the epoch: when the source was committed. */
  readonly sourceDate: number;
}

/** What is inside, as CycloneDX 1.6 in JSON; the same input gives the same bytes. `embedded` is by the name of the component. Pure. */
export function cycloneDx(
  product: Product,
  components: readonly Component[],
  embedded: Readonly<Record<string, readonly EmbeddedLibrary[]>> = {},
): string {
  const purl = (c: Component): string => `pkg:npm/${c.name.replace("@", "%40")}@${c.version}`;
  const reference = `pkg:deb/${product.name}@${encodeURIComponent(product.version)}?arch=${product.architecture}`;
  const listed = components
    .toSorted((a, b) => (purl(a) < purl(b) ? -1 : 1))
    .map((component) => ({
      type: component.part === "runtime" ? "platform" : "library",
      "bom-ref": purl(component),
      ...(component.name.startsWith("@")
        ? { group: component.name.split("/")[0], name: component.name.split("/")[1] }
        : { name: component.name }),
      version: component.version,
      purl: purl(component),
      licenses: licensesOf(component.license),
      ...(component.integrity !== undefined && {
        hashes: [{ alg: "SHA-512", content: Buffer.from(component.integrity.replace(/^sha512-/, ""), "base64").toString("hex") }],
      }),
      properties: [{ name: "collector:part", value: component.part }],
    }));
  // Once each, though two programs may hold the same; flat, because not every scanner looks inside a component.
  const libraries = new Map(
    Object.values(embedded)
      .flat()
      .map((library) => [library.purl, library]),
  );
  const body = {
    $schema: "http://cyclonedx.org/schema/bom-1.6.schema.json",
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: {
      timestamp: new Date(product.sourceDate * 1000).toISOString(),
      component: {
        type: "application",
        "bom-ref": reference,
        name: product.name,
        version: product.version,
        licenses: [{ license: { id: "Apache-2.0" } }],
      },
    },
    components: [...listed, ...[...libraries.values()].toSorted((a, b) => (a.purl < b.purl ? -1 : 1)).map(embeddedComponent)],
    dependencies: [
      { ref: reference, dependsOn: listed.map((component) => component["bom-ref"]) },
      ...components
        .filter(({ name }) => embedded[name])
        .map((component) => ({ ref: purl(component), dependsOn: embedded[component.name]?.map((library) => embeddedReference(library)) })),
    ],
  };
  return `${JSON.stringify({ serialNumber: `urn:uuid:${uuidOf(JSON.stringify(body))}`, ...body }, null, 2)}\n`;
}

const licensesOf = (license: string): readonly object[] => [
  /^[A-Za-z0-9.+-]+$/.test(license) ? { license: { id: license } } : { expression: license },
];

/** Apart from that of a package with the same package URL, whose code is in the bundle itself. */
const embeddedReference = ({ purl }: EmbeddedLibrary): string => `embedded:${purl}`;

const embeddedComponent = (library: EmbeddedLibrary): object => ({
  type: "library",
  "bom-ref": embeddedReference(library),
  name: library.name,
  version: library.version,
  ...(library.cpe !== undefined && { cpe: library.cpe }),
  purl: library.purl,
  licenses: licensesOf(library.license),
  properties: [{ name: "collector:part", value: "embedded" }],
});

/** A uuid of version 8 (RFC 9562, 5.8) that follows from the text. */
function uuidOf(text: string): string {
  const bytes = createHash("sha256").update(text).digest().subarray(0, 16);
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x80;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  return bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}
