import { expect, it } from "vitest";
import opcua from "./driver.ts";
import { firstNamespaces } from "./first-namespaces.ts";

const URL_BEFORE = "opc.tcp://before:4840";
const URL_NOW = "opc.tcp://now:4840";
const details = (url: string): unknown => ({ type: "opcua", endpoint_url: url });

it("an index is rewritten by the list of the server that the source names now, not by that of the server before it", () => {
  const values: Record<string, unknown> = {};
  const set = (key: string, value: unknown) => {
    values[key] = value;
  };
  const kept = { values, set };
  const lasting = (url: string) => opcua.renumbered?.lasting("ns=2;s=speed", values, details(url));
  firstNamespaces(kept, URL_BEFORE, ["http://opcfoundation.org/UA/", "urn:server", "urn:before"]);
  expect(lasting(URL_BEFORE)).toBe("nsu=urn:before;s=speed");
  expect(() => lasting(URL_NOW)).toThrow(`has not read this source yet at ${URL_NOW}`);
  firstNamespaces(kept, URL_NOW, ["http://opcfoundation.org/UA/", "urn:server", "urn:now"]);
  expect(lasting(URL_NOW)).toBe("nsu=urn:now;s=speed");
});
