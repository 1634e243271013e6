import { expect, test } from "vitest";
import { certificateWords, tlsWords } from "./certificate-words.ts";

const failure = (code: string): Error => Object.assign(new Error("words of OpenSSL"), { code });
const NOW = new Date("2026-11-22T16:30:45Z");

test.each([
  ["CERT_NOT_YET_VALID", "is not valid yet"],
  ["CERT_HAS_EXPIRED", "has expired"],
])("%s shows this machine's clock", (code, words) => {
  const said = certificateWords(failure(code), NOW);
  expect(said).toContain(words);
  expect(said).toContain("2026-11-22 16:30 UTC");
  expect(said).toContain("timedatectl");
});

test("other refusals name the setting that is about them", () => {
  expect(certificateWords(failure("SELF_SIGNED_CERT_IN_CHAIN"), NOW)).toContain("api.tls.ca_file");
  expect(certificateWords(failure("ERR_TLS_CERT_ALTNAME_INVALID"), NOW)).toContain("api.url");
  expect(certificateWords(failure("ECONNREFUSED"), NOW)).toBeUndefined();
  expect(tlsWords("ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED")).toContain("api.tls.cert_file");
  expect(tlsWords("ERR_SSL_WRONG_VERSION_NUMBER")).toContain("cannot be agreed on");
});
