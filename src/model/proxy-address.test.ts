import { expect, test } from "vitest";
import { parseProxy, proxyIn, proxyName } from "./proxy-address.ts";

test.each([
  ["http://proxy.example", { protocol: "http", host: "proxy.example", port: 3128, user: undefined }],
  ["http://line%20a@10.0.0.1:80/", { protocol: "http", host: "10.0.0.1", port: 80, user: "line a" }],
  ["SOCKS5://[fd00::7]", { protocol: "socks5", host: "fd00::7", port: 1080, user: undefined }],
  ["socks5://a%3Ab@proxy.example:9050", { protocol: "socks5", host: "proxy.example", port: 9050, user: "a:b" }],
])("%s is a proxy", (text, proxy) => expect(parseProxy(text)).toEqual(proxy));

test.each([
  ["proxy.example:3128", /expected an address such as/],
  ["http://", /expected an address/],
  ["http://proxy.example/path", /expected an address/],
  ["http://proxy.example:99999", /expected an address/],
  ["ftp://proxy.example", /expected an address/],
  ["https://proxy.example", /https is not spoken/],
  ["socks4://proxy.example", /socks4 is not spoken/],
  ["http://line:canary@proxy.example", /holds a password.*secret set NAME\/users\/USER/],
  ["http://a%3Ab@proxy.example", /colon/],
  ["http://a%ff@proxy.example", /%25/],
  [`socks5://${"u".repeat(256)}@proxy.example`, /longer than 255/],
])("%s is refused, without a word of its password", (text, words) => {
  const parsed = parseProxy(text);
  expect(parsed).toEqual({ problem: expect.stringMatching(words) });
  expect(JSON.stringify(parsed)).not.toContain("canary");
});

test.each([
  [{ proxy: "http://a@[fd00::7]" }, "http://[fd00::7]:3128"],
  [{ proxy: "nonsense" }, undefined],
  [{}, undefined],
  [undefined, undefined],
])("options %j name %s", (options, name) => {
  const proxy = proxyIn(options);
  expect(proxy && proxyName(proxy)).toBe(name);
});
