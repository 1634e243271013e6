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

/** What stands before an `@` in the authority of a URL; a password that holds a slash is part of it. */
const USER_INFORMATION = /^([a-z][a-z0-9+.-]*:\/\/|(?![a-z][a-z0-9+.-]*:\/\/))(?:[^/?#@]*@|[^/?#@:[]*:(?!\d{1,5}(?:[/?#]|$)).*@)/is;

/** A URL or host without user and password. Pure. */
export function withoutUserInformation(text: string): string {
  let bare = text;
  while (USER_INFORMATION.test(bare)) bare = bare.replace(USER_INFORMATION, "$1");
  return bare;
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
