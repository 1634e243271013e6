import { expect, test } from "vitest";
import { proxyEnvironment } from "../os/proxy-environment.ts";
import { proxyFor, refusalWords } from "./proxy.ts";

const NOTHING = proxyEnvironment({});
const API = new URL("https://platform.example");
const basic = (text: string): string => `Basic ${btoa(text)}`;

test.each([
  ["http://proxy.example:3128", undefined, { protocol: "http:", host: "proxy.example", port: 3128, authorization: undefined }],
  ["https://proxy.example", undefined, { protocol: "https:", port: 443 }],
  ["http://proxy.example", undefined, { port: 80 }],
  ["http://[fd00::1]:3128", undefined, { host: "fd00::1", name: "[fd00::1]:3128" }],
  ["http://us%40er@proxy.example:3128", "p:w%", { name: "proxy.example:3128", authorization: basic("us@er:p:w%") }],
])("api.proxy %s", (url, password, expected) => {
  expect(proxyFor(API, { url, password }, NOTHING)).toMatchObject({ ...expected, setting: "api.proxy" });
});

test.each([
  ["HTTPS_PROXY", { HTTPS_PROXY: "http://upper:1" }, "upper:1"],
  ["lower case wins", { HTTPS_PROXY: "http://upper:1", https_proxy: "http://lower:2" }, "lower:2"],
  ["without a scheme", { https_proxy: "proxy:3128" }, "proxy:3128"],
  ["ALL_PROXY", { ALL_PROXY: "http://all:3" }, "all:3"],
  ["an empty one is none", { https_proxy: " ", HTTPS_PROXY: "" }, undefined],
  ["the one of http is for http", { HTTP_PROXY: "http://plain:1" }, undefined],
  ["NO_PROXY", { HTTPS_PROXY: "http://upper:1", NO_PROXY: "platform.example" }, undefined],
])("the environment: %s", (_, variables, name) => {
  expect(proxyFor(API, undefined, proxyEnvironment(variables))?.name).toBe(name);
});

test("the setting wins over the environment, NO_PROXY included", () => {
  const environment = proxyEnvironment({ HTTPS_PROXY: "http://other:1", NO_PROXY: "*" });
  expect(proxyFor(API, { url: "http://proxy:1", password: undefined }, environment)?.name).toBe("proxy:1");
});

test.each([
  ["https://platform.example", "example", true],
  ["https://platform.example", ".example", true],
  ["https://platform.example", "*.example", true],
  ["https://platform.example", "a.test PLATFORM.EXAMPLE.", true],
  ["https://platform.example", "form.example", false],
  ["https://platform.example", "platform.example:443", true],
  ["https://platform.example:8443", "platform.example:443,x:y", false],
  ["https://10.1.2.3", "10.0.0.0/8", true],
  ["https://10.1.2.3", "10.0.0.0/33, 11.0.0.0/8, 10.1.2.30, 2.3", false],
  ["https://10.1.2.3:8443", "10.1.2.3:8443", true],
  ["https://[fd00::5]", "fd00::/8", true],
  ["https://[fd00::5]", "[fd00:0::5]:443", true],
  ["https://[fd00::5]", "fe80::/10 ::/200", false],
  ["https://platform.example", "*", true],
  ["https://platform.example", " , ", false],
])("NO_PROXY of %s with %s: %s", (url, NO_PROXY, isExempt) => {
  const proxy = proxyFor(new URL(url), undefined, proxyEnvironment({ HTTPS_PROXY: "http://proxy:1", NO_PROXY }));
  expect(proxy === undefined).toBe(isExempt);
});

test("this machine is never asked through a proxy", () => {
  for (const url of ["http://127.0.0.1:1", "https://localhost", "http://[::1]:2"])
    expect(proxyFor(new URL(url), { url: "http://proxy:1", password: undefined }, NOTHING)).toBeUndefined();
});

test.each([
  ["socks5://user:canary@proxy:1", "socks5 is not spoken"],
  ["http://:canary@", "is not an address"],
  ["http://us%3Aer:canary@proxy:1", "holds a colon"],
  ["http://user:canary%@proxy:1", "not an escape"],
  [`http://user:${"canary".repeat(500)}@proxy:1`, "longer than"],
])("a proxy that cannot be used is said without its password: %s", (HTTPS_PROXY, words) => {
  const ask = () => proxyFor(API, undefined, proxyEnvironment({ HTTPS_PROXY }));
  expect(ask).toThrow(words);
  expect(ask).toThrow(/^the environment's HTTPS_PROXY: (?!.*canary)/);
});

test("a proxy with https takes an API with https only", () => {
  const proxy = { url: "https://proxy.example", password: undefined };
  expect(() => proxyFor(new URL("http://platform.example"), proxy, NOTHING)).toThrow("api.proxy: ");
});

test("what a proxy refuses is said with what to do", () => {
  const named = (url: string, status: number): string => {
    const proxy = proxyFor(API, { url, password: "canary" }, NOTHING);
    return proxy ? refusalWords(status, proxy) : "";
  };
  expect(named("http://proxy:1", 403)).toBe("the proxy proxy:1 (api.proxy) does not open the way to the API: it answered 403");
  expect(named("http://user@proxy:1", 407)).toContain("does not accept the user or its password");
  const bare = proxyFor(API, { url: "http://proxy:1", password: undefined }, NOTHING);
  expect(bare && refusalWords(407, bare)).toContain("api.proxy_password_file");
});
