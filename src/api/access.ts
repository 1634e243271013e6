import { X509Certificate } from "node:crypto";
import path from "node:path";
import { readBoundedFile } from "../lib/bounded-file.ts";
import { proveOwner } from "../lib/socket-owner.ts";
import type { ApiAccess } from "../model/api-access.ts";
import { withoutUserInformation } from "../model/endpoint-url.ts";
import { messageOf } from "../model/failure.ts";
import type { Settings } from "../model/settings.ts";
import { type ProxyEnvironment, proxyEnvironment } from "../os/proxy-environment.ts";
import type { Route } from "./connections.ts";
import { proxyFor } from "./proxy.ts";
import type { RequesterOptions } from "./requester.ts";

/** The place where the configuration API is and how it is asked, as the settings say: for the service, for what it sends there, and for people. */

const MAX_KEY_BYTES = 4096;
const MAX_PEM_BYTES = 2 ** 20;

type ApiSettings = Pick<Settings, "api" | "embedded_api">;

/** The place where the embedded API keeps the keys that it made at its first start (design/api-decisions). */
export const keysFolder = (stateDir: string): string => path.join(stateDir, "keys");

/** The API as this collector reaches it, with the collector's own key. `stateDir` is absolute. Pure. */
export function apiAccess(settings: ApiSettings, stateDir: string): ApiAccess {
  const { api, embedded_api } = settings;
  if (api)
    return {
      url: withoutUserInformation(api.url),
      keyFile: api.key_file,
      ...(api.authorization !== undefined && { authorization: api.authorization }),
      ...routeFiles(api),
      insecure: api.insecure,
      embedded: false,
    };
  return {
    url: `${embedded_api.tls ? "https" : "http"}://${embedded_api.listen}`,
    keyFile: path.join(keysFolder(stateDir), "collector.key"),
    authorization: "bare",
    socketFile: embeddedSocket(stateDir),
    insecure: false,
    embedded: true,
  };
}

/** The same API as a person reaches it: with the key of `keyFile`, else the settings' one or the embedded API's admin key. Pure. */
export function personalAccess(settings: ApiSettings, stateDir: string, keyFile: string | undefined): ApiAccess {
  const access = apiAccess(settings, stateDir);
  return { ...access, keyFile: keyFile ?? (access.embedded ? path.join(keysFolder(stateDir), "admin.key") : access.keyFile) };
}

/**
 * The socket on which the collector and the verbs ask the embedded API, never its port: whoever holds that while the service is down would get
 * the keys, and be the configuration. Whatever certificate the network is shown is nothing to them either.
 */
export const embeddedSocket = (stateDir: string): string => path.join(stateDir, "api.sock");

function routeFiles({ tls = {}, proxy, proxy_password_file }: NonNullable<Settings["api"]>): Partial<ApiAccess> {
  const { ca_file, cert_file, key_file } = tls;
  return {
    ...(ca_file !== undefined && { caFile: ca_file }),
    ...(cert_file !== undefined && key_file !== undefined && { certificate: { certFile: cert_file, keyFile: key_file } }),
    ...(proxy !== undefined && {
      proxy: { url: proxy, ...(proxy_password_file !== undefined && { passwordFile: proxy_password_file }) },
    }),
  };
}

/**
 * What a requester needs of it. Its files are read for each request, so that one that is renewed needs no restart and one that is missing
 * or damaged costs the requests alone, each of which says so by its setting.
 */
export function requesterAccess(access: ApiAccess): RequesterAccess {
  const { url, keyFile, authorization, socketFile, insecure } = access;
  return {
    url,
    readKey: () => readBoundedFile(keyFile, MAX_KEY_BYTES).toString("utf8"),
    authorization,
    readRoute: () => routeOf(access, proxyEnvironment()),
    socketPath: socketFile,
    insecure,
  };
}

export type RequesterAccess = Omit<RequesterOptions, "timeouts" | "readRoute"> & { readonly readRoute: () => Route };

/** Throws an Error that names the setting which cannot be used, and nothing that it holds. */
function routeOf({ url, caFile, certificate, proxy, embedded, socketFile }: ApiAccess, environment: ProxyEnvironment): Route {
  if (socketFile !== undefined) proveOwner(socketFile);
  if (embedded) return {};
  return {
    ca: caFile === undefined ? undefined : authorities(caFile),
    cert: certificate && pem("api.tls.cert_file", certificate.certFile, "CERTIFICATE"),
    key: certificate && pem("api.tls.key_file", certificate.keyFile, "PRIVATE KEY"),
    proxy: proxyFor(new URL(url), proxy && { url: proxy.url, password: proxyPassword(proxy.passwordFile) }, environment),
  };
}

const BLOCK = /-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----[\s\S]*?(?:-----END (?:TRUSTED |X509 )?CERTIFICATE-----|$)/g;

/** Node passes over what it cannot read of authorities, and none of a server's certificates would be accepted. */
function authorities(file: string): string {
  const text = pem("api.tls.ca_file", file, "CERTIFICATE");
  for (const [index, [block]] of [...text.matchAll(BLOCK)].entries())
    if (!isCertificate(block))
      throw new Error(`api.tls.ca_file: ${file}: certificate ${index + 1} in it is damaged or cut off; bring the file again`);
  return text;
}

function isCertificate(block: string): boolean {
  try {
    return new X509Certificate(block).subject !== undefined;
  } catch {
    return false;
  }
}

/** A PEM file with at least one block of `what`. */
function pem(setting: string, file: string, what: "CERTIFICATE" | "PRIVATE KEY"): string {
  const text = named(setting, () => readBoundedFile(file, MAX_PEM_BYTES)).toString("utf8");
  if (text.trim() === "") throw new Error(`${setting}: ${file} is empty`);
  if (!new RegExp(`-----BEGIN [A-Z0-9 ]*${what}-----`).test(text))
    throw new Error(`${setting}: ${file} holds no ${what.toLowerCase()} in PEM (-----BEGIN … ${what}-----)`);
  return text;
}

function proxyPassword(file: string | undefined): string | undefined {
  if (file === undefined) return undefined;
  const [password = ""] = named("api.proxy_password_file", () => readBoundedFile(file, MAX_KEY_BYTES))
    .toString("utf8")
    .split(/\r?\n/, 1);
  if (password === "") throw new Error(`api.proxy_password_file: ${file} is empty; put the password there, one line`);
  return password;
}

function named<T>(setting: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new Error(`${setting}: ${messageOf(error)}`, { cause: error });
  }
}
