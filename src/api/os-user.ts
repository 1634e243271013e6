/** Names who types a command; told to the embedded API of this machine alone. */
export const OS_USER_HEADER = "collector-os-user";

/** The user that a request names; undefined: none, or what is no name of a user. Pure. */
export const osUserIn = (header: string | string[] | undefined): string | undefined =>
  typeof header === "string" && /^[\w.@\\+-]{1,64}$/.test(header) ? header : undefined;
