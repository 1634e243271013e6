import { type Warning, warning } from "../model/warning.ts";
import { type GrowingPause, longerPause } from "./growing-pause.ts";

/** What an API may offer beyond its list of data sources, each asked for by itself. */
export type Offer = "data_sinks" | "extensions" | "revision" | "variables" | "secrets" | "statuses";

/**
 * Statuses by which an API says that it does not have an operation, or not for this key (design/api-decisions). 401 says so too where the same key
 * was taken for another operation just before.
 */
export const NOT_OFFERED: ReadonlySet<number> = new Set([403, 404, 405, 410, 501]);

/**
 * True: an answer to `GET /ext/v1` says that there are no extensions: any refusal but 401, of which the lists tell whether it is about
 * the key, and 429. Pure.
 */
export const isProbeRefused = (status: number): boolean =>
  (status >= 400 && status < 500 && status !== 401 && status !== 429) || status === 501;

/** What to do instead, by what is missing. */
const INSTEAD: Readonly<Record<Exclude<Offer, "extensions" | "revision">, string>> = {
  data_sinks:
    "does not offer data sinks: the last good ones stay; to publish elsewhere, ask its operator for GET /v2/data-sinks, or leave api out of the settings and use the embedded API",
  variables:
    "does not offer variables: put them into files on this machine, one for each data source; collector variables check looks them over",
  secrets: "does not give out passwords: for each entry that needs one, type sudo collector secret set NAME",
  statuses: "does not take statuses back: see them with collector status, on the page and in the metrics of this machine",
};

/** For people: over a connection that can be listened to no password is asked for. */
export const SECRETS_IN_THE_CLEAR: Warning = warning(
  "passwords_not_asked",
  "passwords are not asked for over plain http: use an https address in api.url, or type sudo collector secret set NAME for each entry that needs one",
);

/** What one API offers, as far as it was asked. What is missing is asked for again after a pause that grows. */
export class Offers {
  readonly #monotonicMs: () => number;
  readonly #missing = new Map<Offer, { readonly pause: GrowingPause; readonly status: number | undefined }>();

  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs;
  }

  /** True: it is to be asked for: it is not known to be missing, or its pause is over. */
  isDue(offer: Offer): boolean {
    const missing = this.#missing.get(offer);
    return !missing || this.#monotonicMs() >= missing.pause.untilMs;
  }

  /** True: a part of the configuration is missing, and is to be asked for again. */
  isPartOverdue(): boolean {
    return (["data_sinks", "variables", "secrets"] as const).some((part) => this.#missing.has(part) && this.isDue(part));
  }

  /** `status`: of the answer that says so; undefined: it has another shape. True: this is new. */
  notOffered(offer: Offer, status: number | undefined): boolean {
    const known = this.#missing.get(offer);
    this.#missing.set(offer, { pause: longerPause(known?.pause, this.#monotonicMs()), status });
    return known === undefined;
  }

  offered(offer: Offer): void {
    this.#missing.delete(offer);
  }

  /** All is to be asked for again: the key, or the API, is another one. */
  forget(): void {
    this.#missing.clear();
  }

  /** For people: what is missing, and what to do instead; undefined: nothing is, or nobody has to know. */
  noteOf(offer: Offer): Warning | undefined {
    if (offer === "extensions" || offer === "revision") return undefined;
    const missing = this.#missing.get(offer) ?? (offer === "data_sinks" ? undefined : this.#missing.get("extensions"));
    if (!missing) return undefined;
    const answered = missing.status === undefined ? "" : ` (it answers ${missing.status})`;
    return warning("api_offers_less", `the API${answered} ${INSTEAD[offer]}`, offer);
  }

  /** One sentence for each thing that is not offered. */
  notes(): readonly Warning[] {
    return (["data_sinks", "variables", "secrets", "statuses"] as const).flatMap((offer) => this.noteOf(offer) ?? []);
  }
}
