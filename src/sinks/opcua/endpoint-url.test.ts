import fc from "fast-check";
import { expect, test } from "vitest";
import { adaptEndpointUrl } from "./endpoint-url.ts";

const OWN = "opc.tcp://box:4840/collector";

test.each([
  ["opc.tcp://10.0.0.7:14840", "opc.tcp://10.0.0.7:14840/collector"],
  ["opc.tcp://plant.example", "opc.tcp://plant.example:4840/collector"],
  ["OPC.TCP://[2001:db8::1]:4840/other", "opc.tcp://[2001:db8::1]:4840/collector"],
  [null, OWN],
  ["", OWN],
  ["http://10.0.0.7", OWN],
  ["opc.tcp://", OWN],
  ["opc.tcp://a b:4840", OWN],
  [`opc.tcp://${"x".repeat(256)}:4840`, OWN],
])("%s", (requested, expected) => expect(adaptEndpointUrl(OWN, requested)).toBe(expected));

test("whatever a client sends, the path stays and nothing else comes in", () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      expect(adaptEndpointUrl(OWN, `opc.tcp://${text}`)).toMatch(/^opc\.tcp:\/\/[A-Za-z0-9._[\]:-]{1,263}\/collector$/);
    }),
  );
});
