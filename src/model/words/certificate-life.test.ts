import { expect, test } from "vitest";
import type { CertificateLife } from "../pki.ts";
import { isTrustOver, lifeNotes, lifeWarnings, WARN_DAYS } from "./certificate-life.ts";

const DAY_MS = 24 * 3_600_000;
const NOW = Date.parse("2027-03-01T12:00:00Z");
const life = (days: number, rest: Partial<CertificateLife> = {}): CertificateLife => ({
  holder: "server opc.tcp://plc:4840",
  subject: "CN=plc",
  thumbprint: "AB",
  notAfter: NOW + days * DAY_MS,
  weaknesses: [],
  ...rest,
});
const until = (date: string): Partial<CertificateLife> => ({ forgivenUntil: Date.parse(`${date}T00:00:00Z`) + DAY_MS });

test.each([
  [life(WARN_DAYS + 1), [], []],
  [life(WARN_DAYS), ["certificate_expires"], ["expires in 60 days"]],
  [life(1.5), ["certificate_expires"], ["expires in 1 day"]],
  [life(0.5), ["certificate_expires"], ["expires within a day"]],
  [life(-1), ["certificate_expires"], ["expired"]],
  [life(400, until("2027-03-01")), [], ["trusted although expired until 2027-03-01"]],
  [life(-1, until("2027-03-01")), ["certificate_forgiven"], ["expired", "trusted although expired until 2027-03-01"]],
  [life(-1, until("2027-02-28")), ["certificate_expires"], ["expired", "trusted although expired until 2027-02-28, which is over"]],
  [life(400, { weaknesses: ["an RSA key of 1024 bits"] }), ["certificate_weak"], ["an RSA key of 1024 bits"]],
])("%#: warnings and notes of a certificate", (one, codes, notes) => {
  const warnings = lifeWarnings(one, NOW);
  expect(warnings.map(({ code }) => code)).toEqual(codes);
  for (const { text, about } of warnings) {
    expect(text).toContain("the certificate of the server opc.tcp://plc:4840 (subject CN=plc, thumbprint AB)");
    expect(about).toBe("AB");
  }
  expect(lifeNotes(one, NOW)).toEqual(notes);
});

test("the trust in an expired certificate ends with its day, and an own end alone ends no connection", () => {
  expect(isTrustOver(life(-1, until("2027-03-01")), NOW)).toBe(false);
  expect(isTrustOver(life(-1, until("2027-02-28")), NOW)).toBe(true);
  expect(isTrustOver(life(1, until("2027-02-28")), NOW)).toBe(false);
  expect(isTrustOver(life(-1), NOW)).toBe(false);
});
