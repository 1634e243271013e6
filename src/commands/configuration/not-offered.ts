import { isProbeRefused, NOT_OFFERED } from "../../api/offers.ts";

/** Our extensions as verbs use them, by the path of their list: what is missing without one, and what to do instead. */
const INSTEAD: Readonly<Record<string, string>> = {
  "/ext/v1/variables":
    "this API does not offer variables: put them into files on this machine, one for each data source (name;address;type;… in variables_dir of the settings), and look them over with collector variables check; collector variables list and export take the files too",
  "/ext/v1/machines": "this API has no list of machines: name the machine by its uuid, --machine UUID",
  "/ext/v1/collectors": "this API has no list of collectors: set collector in the settings to the uuid of the one that is meant",
  "/ext/v1/secrets": "this API does not give out passwords: give the password with --password-file, or type it at the prompt",
};

/**
 * What to do where an API does not have an extension that a verb needs; undefined: the answer says something else. `isKeyTaken`: the same
 * key was taken for another operation, so that 401 is about the path. Pure.
 */
export function insteadOf(method: string, path: string, status: number | undefined, isKeyTaken: boolean): string | undefined {
  const words = INSTEAD[path];
  if (words === undefined || status === undefined) return undefined;
  const isRefused =
    status === 401
      ? isKeyTaken
      : NOT_OFFERED.has(status) || (method === "GET" && status !== 400 && status !== 422 && isProbeRefused(status));
  return isRefused ? words : undefined;
}
