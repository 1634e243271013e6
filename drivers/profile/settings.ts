import * as z from "zod";
import { pluginSchema } from "../../src/model/binding.ts";
import { networkSchema } from "../../src/model/policy.ts";
import { type Profile, profileSchema } from "../../src/model/profile.ts";
import { AUTO, encodingSetting } from "../lib/encoding.ts";
import type { ParameterSettings } from "./compiled.ts";

const PROFILE = "File with the profile of this source; absent: the one that bindings names for its type";

/** The content of a profile's file takes the place of its name before the settings come here; a problem of the file does, too. */
const profile = z
  .union([z.string(), z.record(z.string(), z.unknown())])
  .optional()
  .describe(PROFILE)
  .transform((given, ctx): Profile | undefined => {
    if (given === undefined) return undefined;
    const issue = (message: string): undefined => void ctx.addIssue({ code: "custom", message });
    if (typeof given === "string") return issue(`${given} was not read`);
    if (typeof given["problem"] === "string") return issue(given["problem"]);
    const parsed = parsedOf(given);
    if ("data" in parsed) return parsed.data;
    return issue(parsed.problem);
  });

/** Profiles by the content that they were made of: sources of one file share one. */
const known = new WeakMap<object, { readonly data: Profile } | { readonly problem: string }>();

function parsedOf(content: object): { readonly data: Profile } | { readonly problem: string } {
  const before = known.get(content);
  if (before) return before;
  const { success, data, error } = profileSchema.safeParse(content);
  const words = error?.issues.map(({ path, message }) => `${path.map(String).join(".")}: ${message}`).join("; ");
  const parsed = success ? { data } : { problem: words ?? "" };
  known.set(content, parsed);
  return parsed;
}

const listen = z
  .string()
  .regex(/^(\[[0-9a-fA-F:.]+\]|\d{1,3}(\.\d{1,3}){3}):\d{1,5}$/, "expected address:port of this machine, such as 192.168.0.2:5001");

/** The local options of a data source that is read by a profile. */
export const settingsSchema = z.strictObject({
  profile,
  plugin: pluginSchema
    .optional()
    .describe("Plugin that reads this source, where it has no profile; absent: the one that bindings names for its type"),
  parameters: z
    .union([z.record(z.string(), z.union([z.string().max(64), z.int()])), z.string().max(2000)])
    .default({})
    .describe("Values of the profile's parameters, or settings of the plugin, by name; on a command line NAME=VALUE,NAME=VALUE")
    .transform((given, ctx): ParameterSettings => {
      if (typeof given !== "string") return given;
      const pairs = given.split(",").map((pair) => pair.split("="));
      if (pairs.every((pair) => pair.length === 2)) return Object.fromEntries(pairs) as ParameterSettings;
      ctx.addIssue({ code: "custom", message: "expected NAME=VALUE,NAME=VALUE" });
      return {};
    }),
  encoding: encodingSetting(AUTO),
  listen: listen
    .optional()
    .describe("Where the device connects to, of a profile with role: listener; policy.yaml opens the address (listen)"),
  peers: z
    .array(networkSchema)
    .max(20)
    .default([])
    .describe("Addresses that may connect there, in addition to that of host; all others are refused"),
});
export type ProfileSettings = z.infer<typeof settingsSchema>;
