import path from "node:path";
import { readBoundedFile } from "../lib/bounded-file.ts";
import type { ApiAccess } from "../model/api-access.ts";
import { messageOf } from "../model/failure.ts";
import type { Settings } from "../model/settings.ts";
import { isLoopback } from "./loopback.ts";
import type { RequesterOptions } from "./requester.ts";

/** Where the configuration API is and how it is asked, as the settings say: for the service, for what it sends there, and for people. */

const MAX_KEY_BYTES = 4096;
const MAX_CA_BYTES = 2 ** 20;

type ApiSettings = Pick<Settings, "api" | "embedded_api">;

/** Where the embedded API keeps the keys that it made at its first start (DESIGN 6). */
export const keysFolder = (stateDir: string): string => path.join(stateDir, "keys");

/** The API as this collector reaches it, with the collector's own key. `stateDir` is absolute. Pure. */
export function apiAccess(settings: ApiSettings, stateDir: string): ApiAccess {
  const { api, embedded_api } = settings;
  if (api)
    return {
      url: api.url,
      keyFile: api.key_file,
      ...(api.authorization !== undefined && { authorization: api.authorization }),
      ...(api.ca !== undefined && { caFile: api.ca }),
      insecure: api.insecure,
      embedded: false,
    };
  const socketFile = embeddedSocket(settings, stateDir);
  return {
    url: `${embedded_api.tls ? "https" : "http"}://${embedded_api.listen}`,
    keyFile: path.join(keysFolder(stateDir), "collector.key"),
    authorization: "bare",
    ...(socketFile !== undefined && { socketFile }),
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
 * The socket on which the collector asks its own API where other machines can reach that: whatever certificate they are shown, and whether
 * or not it is still good, is nothing to the collector. Undefined: it is asked on its address. Pure.
 */
export function embeddedSocket({ api, embedded_api: { listen, tls } }: ApiSettings, stateDir: string): string | undefined {
  if (api || (!tls && isLoopback(listen.slice(0, listen.lastIndexOf(":"))))) return undefined;
  return path.join(stateDir, "api.sock");
}

/**
 * What a requester needs of it; the key is read for each request, so that a changed one needs no restart. Throws Error, which names the
 * setting, where the certificate authorities cannot be read.
 */
export function requesterAccess(access: ApiAccess): Omit<RequesterOptions, "timeouts"> {
  const { url, keyFile, authorization, caFile, socketFile, insecure } = access;
  return {
    url,
    readKey: () => readBoundedFile(keyFile, MAX_KEY_BYTES).toString("utf8"),
    authorization,
    ca: caFile === undefined ? undefined : authorities(caFile),
    socketPath: socketFile,
    insecure,
  };
}

function authorities(file: string): string {
  try {
    return readBoundedFile(file, MAX_CA_BYTES).toString("utf8");
  } catch (error) {
    throw new Error(`api.ca: ${messageOf(error)}`, { cause: error });
  }
}
