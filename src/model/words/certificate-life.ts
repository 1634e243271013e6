import type { CertificateLife } from "../pki.ts";
import { type Warning, warning } from "../warning.ts";

/** A certificate's end is a warning from so many days before it. */
export const WARN_DAYS = 60;
const DAY_MS = 24 * 3_600_000;

/** Sentences for status and log on a certificate at this time (epoch ms). Pure. */
export function lifeWarnings(life: CertificateLife, nowMs: number): readonly Warning[] {
  const { holder, subject, thumbprint, notAfter, forgivenUntil, weaknesses } = life;
  const name = `the certificate of the ${holder} (subject ${subject}, thumbprint ${thumbprint})`;
  const warnings: Warning[] = [];
  if (nowMs > notAfter)
    warnings.push(
      isForgiven(life, nowMs)
        ? warning(
            "certificate_forgiven",
            `${name} expired on ${dayOf(notAfter)}; a person trusts it all the same until the end of ${lastDayOf(forgivenUntil)}: renew it there before`,
            thumbprint,
          )
        : warning(
            "certificate_expires",
            `${name} expired on ${dayOf(notAfter)}: the open connection stays, a new one is refused; renew the certificate there`,
            thumbprint,
          ),
    );
  else if (notAfter - nowMs <= WARN_DAYS * DAY_MS)
    warnings.push(
      warning(
        "certificate_expires",
        `${name} expires on ${dayOf(notAfter)}, ${daysLeft(notAfter, nowMs)}: renew it there, and trust the new one here${
          isForgiven(life, nowMs) ? `; a person trusts this one until the end of ${lastDayOf(forgivenUntil)}` : ""
        }`,
        thumbprint,
      ),
    );
  if (weaknesses.length > 0)
    warnings.push(
      warning(
        "certificate_weak",
        `${name} has ${weaknesses.join(" and ")}, which others may break: renew it there with an RSA key of 2048 bits or more and SHA-256`,
        thumbprint,
      ),
    );
  return warnings;
}

/** lifeWarnings in the few words of a list. Pure. */
export function lifeNotes(life: Omit<CertificateLife, "holder">, nowMs: number): readonly string[] {
  const { notAfter, forgivenUntil, weaknesses } = life;
  const ending = nowMs > notAfter ? ["expired"] : notAfter - nowMs <= WARN_DAYS * DAY_MS ? [`expires ${daysLeft(notAfter, nowMs)}`] : [];
  const forgiven =
    forgivenUntil === undefined
      ? []
      : [`trusted although expired until ${lastDayOf(forgivenUntil)}${isForgiven(life, nowMs) ? "" : ", which is over"}`];
  return [...ending, ...forgiven, ...weaknesses];
}

/** True: a person trusts it at this time whether it has expired or not. Pure. */
export const isForgiven = ({ forgivenUntil }: Pick<CertificateLife, "forgivenUntil">, nowMs: number): boolean =>
  forgivenUntil !== undefined && nowMs < forgivenUntil;

/** True: a connection that was opened with it has to end, because the trust in an expired certificate is over. Pure. */
export const isTrustOver = ({ notAfter, forgivenUntil }: CertificateLife, nowMs: number): boolean =>
  forgivenUntil !== undefined && nowMs > notAfter && nowMs >= forgivenUntil;

function daysLeft(notAfter: number, nowMs: number): string {
  const days = Math.floor((notAfter - nowMs) / DAY_MS);
  return days === 0 ? "within a day" : days === 1 ? "in 1 day" : `in ${days} days`;
}

/** The last whole day before this time. */
export const lastDayOf = (untilMs = 0): string => dayOf(untilMs - 1);
const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10);
