import { createHash } from "node:crypto";
import type { Component } from "./inventory.ts";

export interface Product {
  readonly name: string;
  readonly version: string;
  /** Debian's name of the architecture. */
  readonly architecture: string;
  /** Seconds of the epoch: when the source was committed. */
  readonly sourceDate: number;
}

/** What is inside, as CycloneDX 1.6 in JSON; the same input gives the same bytes. Pure. */
export function cycloneDx(product: Product, components: readonly Component[]): string {
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
      licenses: [/^[A-Za-z0-9.+-]+$/.test(component.license) ? { license: { id: component.license } } : { expression: component.license }],
      ...(component.integrity !== undefined && {
        hashes: [{ alg: "SHA-512", content: Buffer.from(component.integrity.replace(/^sha512-/, ""), "base64").toString("hex") }],
      }),
      properties: [{ name: "collector:part", value: component.part }],
    }));
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
    components: listed,
    dependencies: [{ ref: reference, dependsOn: listed.map((component) => component["bom-ref"]) }],
  };
  return `${JSON.stringify({ serialNumber: `urn:uuid:${uuidOf(JSON.stringify(body))}`, ...body }, null, 2)}\n`;
}

/** A uuid of version 8 (RFC 9562, 5.8) that follows from the text. */
function uuidOf(text: string): string {
  const bytes = createHash("sha256").update(text).digest().subarray(0, 16);
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x80;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  return bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}
