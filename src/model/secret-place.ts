import * as z from "zod";
import { escapeControls } from "../base/plain-text.ts";
import { endpointParts, withoutUserInformation } from "./endpoint-url.ts";
import { weakerSecurity } from "./security-strength.ts";

const text = z.string().max(4096);
/** A user in it is no part of the place, and may have been kept before it was taken out. */
const address = text.transform(withoutUserInformation);

/** Where, as whom and how protected a secret is used, as far as the configuration API says it. */
export const secretPlaceSchema = z.strictObject({
  type: text,
  host: address,
  port: z.number().nullable(),
  /** OPC UA. */
  endpoint_url: address.nullable(),
  /** Null: the details name none. */
  user: text.nullable(),
  /** OPC UA. */
  security: z.strictObject({ security_mode: text, endpoint_security_policy: text, token_security_policy: text }).nullable(),
});
export type SecretPlace = z.infer<typeof secretPlaceSchema>;

const detailsSchema = z.object({
  type: text,
  host: address,
  port: z.number().nullable().catch(null),
  endpoint_url: address.nullable().catch(null),
  username: text.optional().catch(undefined),
  user_identity: z.object({ type: text.optional(), username: text.optional() }).optional().catch(undefined),
  security_settings: secretPlaceSchema.shape.security.catch(null),
});

/** The place that details name; undefined: no secret goes anywhere with them, as with a server of this collector's own or without a user. Pure. */
export function secretPlace(details: unknown): SecretPlace | undefined {
  const parsed = detailsSchema.safeParse(details);
  if (!parsed.success) return undefined;
  const { type, host, port, endpoint_url, username, user_identity: identity, security_settings: security } = parsed.data;
  if (identity && identity.type !== "UserNamePassword") return undefined;
  return { type, host, port, endpoint_url, user: identity?.username ?? username ?? null, security };
}

/** Fields of `placeChanges` that networks can open. */
const ADDRESS: ReadonlySet<string> = new Set(["host", "endpoint_url"]);
export const isAddressField = (field: string): boolean => ADDRESS.has(field);

/**
 * The fields, as paths with dots in the details, whose change takes a secret elsewhere, gives it out as another user's or protects it less.
 * Empty: it may be used there as here. Pure.
 */
export function placeChanges(before: SecretPlace, now: SecretPlace): readonly string[] {
  const other = (["type", "host", "port", "endpoint_url"] as const).filter((field) => before[field] !== now[field]);
  const weaker = before.security && now.security ? weakerSecurity(before.security, now.security) : [];
  return [
    ...other,
    ...(before.user === now.user ? [] : ["user_identity.username"]),
    ...weaker.map((field) => `security_settings.${field}`),
    ...((before.security === null) === (now.security === null) ? [] : ["security_settings"]),
  ];
}

const MAX_WORDS = 260;
const shown = (text: string): string => escapeControls(text.slice(0, MAX_WORDS));
const addressWords = (host: string, port: number | null): string =>
  `${host.includes(":") ? `[${shown(host)}]` : shown(host)}${port === null ? "" : `:${port}`}`;

/** For people, such as `10.0.0.5:4840 as reader (SignAndEncrypt, channel Basic256Sha256, password Basic256Sha256)`. Pure. */
export function placeWords({ host, port, endpoint_url, user, security }: SecretPlace): string {
  const address = addressWords(host, port);
  const endpoint = endpoint_url === null ? undefined : endpointParts(endpoint_url);
  // Not as it is written: what stands before an @ may be a password.
  const url = endpoint_url === null ? address : endpoint ? addressWords(endpoint.host, endpoint.port) : "an endpoint_url that is not valid";
  const protection =
    security === null
      ? ""
      : ` (${shown(security.security_mode)}, channel ${shown(security.endpoint_security_policy)}, password ${shown(security.token_security_policy)})`;
  return `${address}${url === address ? "" : `, called ${url},`}${user === null ? "" : ` as ${shown(user)}`}${protection}`;
}
