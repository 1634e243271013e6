/** Port of OPC UA's own registration (OPC 10000-6, 7.1): where an endpoint's URL names none. */
export const OPCUA_PORT = 4840;

/** What an OPC UA TCP endpoint's URL consists of (OPC 10000-6, 7.1). */
export interface EndpointParts {
  /** Name or address, an IPv6 address without its brackets; at least one character. */
  readonly host: string;
  /** 0 to 99999, as it is written; 4840 where the URL names none. */
  readonly port: number;
  /** The part after host and port, from the slash on; empty: nothing. */
  readonly path: string;
}

const URL_FORM = /^opc\.tcp:\/\/(?:\[([^\]/]+)\]|([^:/?#\s[\]]+))(?::(\d{1,5}))?([/?#].*)?$/is;

const SCHEME = /^[a-z][a-z0-9+.-]*:\/\//i;

/**
 * A URL or host without user and password. Everything before the last `@` counts as user information: a password may hold `/`, `@`, digits
 * and colons as they are, so a path writes its own `@` as `%40` (RFC 3986, 2.2 and 3.2.1). Pure.
 */
export function withoutUserInformation(text: string): string {
  const at = text.lastIndexOf("@");
  return at === -1 ? text : `${SCHEME.exec(text.slice(0, at + 1))?.[0] ?? ""}${text.slice(at + 1)}`;
}

/** Fields of the details that name a host or a URL. */
export const ADDRESS_FIELDS = ["host", "endpoint_url"] as const;
export type AddressField = (typeof ADDRESS_FIELDS)[number];

/** Details without user and password in their addresses, and the fields that had some. The same details where none had. Pure. */
export function detailsWithoutUser<T>(details: T): { readonly details: T; readonly fields: readonly AddressField[] } {
  if (typeof details !== "object" || details === null || Array.isArray(details)) return { details, fields: [] };
  const bare: Readonly<Record<string, unknown>> = Object.fromEntries(
    ADDRESS_FIELDS.flatMap((field) => {
      const given: unknown = Object.hasOwn(details, field) ? Reflect.get(details, field) : undefined;
      const without = typeof given === "string" ? withoutUserInformation(given) : given;
      return without === given ? [] : [[field, without]];
    }),
  );
  const fields = ADDRESS_FIELDS.filter((field) => Object.hasOwn(bare, field));
  return fields.length === 0 ? { details, fields } : { details: { ...details, ...bare }, fields };
}

/** What a person is told of addresses that held a user or a password: the fields, and nothing of the text. Pure. */
export const userLeftOutWords = (fields: readonly AddressField[]): string =>
  `${fields.join(" and ")} held a user or a password, which was left out: take it out of the address, give it where the type has fields for user and password, and change the password, as it was in clear text`;

/** Takes an OPC UA TCP endpoint's URL apart; undefined for what is none. Pure. */
export function endpointParts(url: string): EndpointParts | undefined {
  const match = URL_FORM.exec(url);
  const host = match?.[1] ?? match?.[2];
  if (!match || host === undefined) return undefined;
  return { host, port: Number(match[3] ?? OPCUA_PORT), path: match[4] ?? "" };
}
