import fc from "fast-check";
import { expect, test } from "vitest";
import { anyText } from "../../test/support/any-text.ts";
import { endpointParts, withoutUserInformation } from "./endpoint-url.ts";

test.each([
  ["opc.tcp://10.0.0.7:4841/path/of?it", { host: "10.0.0.7", port: 4841, path: "/path/of?it" }],
  ["OPC.TCP://Press.local", { host: "Press.local", port: 4840, path: "" }],
  ["opc.tcp://[fd00::7]", { host: "fd00::7", port: 4840, path: "" }],
  ["opc.tcp://[fd00::7]:4842/", { host: "fd00::7", port: 4842, path: "/" }],
  ["opc.tcp://", undefined],
  ["opc.tcp://:4840", undefined],
  ["opc.tcp://a b:4840", undefined],
  ["opc.tcp://press:port", undefined],
  ["opc.tcp://press:4840x", undefined],
  ["opc.tcp://press:123456", undefined],
  ["opc.tcp://[]:4840", undefined],
  ["opc.tcp://[a/b]:4840", undefined],
  ["opc.https://press", undefined],
  ["", undefined],
])("%s", (url, parts) => expect(endpointParts(url)).toEqual(parts));

test("what is put together comes apart the same", () => {
  const host = fc.oneof(fc.domain(), fc.ipV4(), fc.ipV6());
  fc.assert(
    fc.property(host, fc.nat(65_535), fc.webPath(), (name, port, path) => {
      const url = `opc.tcp://${name.includes(":") ? `[${name}]` : name}:${port}${path}`;
      expect(endpointParts(url)).toEqual({ host: name, port, path });
    }),
  );
});

test("of any text, the text contains what is found", () => {
  fc.assert(
    fc.property(anyText(), (rest) => {
      const parts = endpointParts(`opc.tcp://${rest}`);
      if (!parts) return;
      expect(parts.host).not.toBe("");
      expect(rest).toContain(parts.host);
      expect(rest.endsWith(parts.path)).toBe(true);
    }),
  );
});

test.each([
  ["opc.tcp://reader:secret@press:4840/plant", "opc.tcp://press:4840/plant"],
  ["opc.tcp://reader@press", "opc.tcp://press"],
  ["opc.tcp://u:1234/x@press", "opc.tcp://press"],
  ["opc.tcp://u:a/b@c@press:4840", "opc.tcp://press:4840"],
  ["reader:secret@10.0.0.7", "10.0.0.7"],
  ["u:p@http://x@10.0.0.7", "10.0.0.7"],
  ["10.0.0.7", "10.0.0.7"],
  ["opc.tcp://press:4840/a%40b", "opc.tcp://press:4840/a%40b"],
])("%s without its user: %s", (given, bare) => expect(withoutUserInformation(given)).toBe(bare));

test("no part of any user and password stays, whatever they hold", () => {
  fc.assert(
    fc.property(anyText(), fc.domain(), fc.nat(65_535), (user, host, port) => {
      expect(withoutUserInformation(`opc.tcp://${user}@${host}:${port}/plant`)).toBe(`opc.tcp://${host}:${port}/plant`);
    }),
  );
});
