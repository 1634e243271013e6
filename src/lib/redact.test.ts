import { expect, test } from "vitest";
import { holdsSecret, redact } from "./redact.ts";

test("fields whose names say that they hold a secret, in JSON, YAML and settings", () => {
  const text = [
    '{"password":"a\\"b","key_file":"/etc/key","nested":{"api_key": "x1", "n": 1, "token":12}}',
    "password: hunter2",
    "  - secret: 'quoted value'",
    "api.authorization = abc",
    "key_file: /etc/collector/api.key",
    "secrets:",
    "  press-1: one",
  ].join("\n");
  expect(redact(text, []).split("\n")).toEqual([
    '{"password":"[redacted]","key_file":"/etc/key","nested":{"api_key": "[redacted]", "n": 1, "token":"[redacted]"}}',
    'password: "[redacted]"',
    '  - secret: "[redacted]"',
    'api.authorization = "[redacted]"',
    "key_file: /etc/collector/api.key",
    "secrets:",
    "  press-1: one",
  ]);
});

test("private keys, credentials of URLs and headers", () => {
  const key = "-----BEGIN EC PRIVATE KEY-----\nMHcC\n-----END EC PRIVATE KEY-----";
  expect(redact(`a ${key} b\nhttp://u:p@h/x Bearer abcdefghijklmnop.q\n-----BEGIN PRIVATE KEY-----\ncut off`, [])).toBe(
    "a [redacted] b\nhttp://[redacted]@h/x Bearer [redacted]\n[redacted]",
  );
});

test("what is known to be secret, in each form, the longer first; what is too short is left", () => {
  const secrets = ["pä ss/1", "pä ss/1 and more", "abc"];
  const text = secrets
    .slice(0, 2)
    .map((secret) => [secret, encodeURIComponent(secret), Buffer.from(secret).toString("base64")].join(" | "));
  const safe = redact(text.join("\n"), secrets);
  expect(safe.replaceAll("[redacted]", "").replaceAll(/[ |\n]/g, "")).toBe("");
  expect([holdsSecret(text.join("\n"), secrets), holdsSecret(safe, secrets), holdsSecret("abc", secrets)]).toEqual([true, false, false]);
});
