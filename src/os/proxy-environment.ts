/** The variables that name a proxy, as curl and most programs read them; lower case wins (HTTP_PROXY alone is read in upper case too). */
export interface ProxyEnvironment {
  readonly https: string | undefined;
  readonly http: string | undefined;
  /** Hosts that are reached without a proxy. */
  readonly none: string | undefined;
}

/**
 * What the environment of this process says of proxies. Read where it is needed and never handed on: the variables may hold a password.
 * An empty variable counts as none.
 */
export function proxyEnvironment(variables: Readonly<Record<string, string | undefined>> = process.env): ProxyEnvironment {
  const first = (...names: readonly string[]): string | undefined =>
    names.map((name) => variables[name]?.trim()).find((text) => text !== undefined && text !== "");
  return {
    https: first("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"),
    http: first("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"),
    none: first("no_proxy", "NO_PROXY"),
  };
}
