import * as z from "zod";
import { BOUND_TYPES, type BoundType } from "./profile-details.ts";

/** A program that reads devices for the collector (docs/plugin-protocol.md). */
export const pluginSchema = z.strictObject({
  command: z
    .array(z.string().min(1).max(4096))
    .min(1)
    .max(64)
    .refine(([program = ""]) => program.startsWith("/"), "expected an absolute path first, such as /opt/scale/plugin")
    .optional()
    .describe("Program and its arguments, run as the collector's own user: for trying out; on a device use socket"),
  socket: z
    .string()
    .startsWith("/", "expected an absolute path, such as /run/collector-plugin/scale.sock")
    .max(100)
    .optional()
    .describe("Socket of the unit that runs it as another user (collector plugin unit)"),
});
export type PluginBinding = z.infer<typeof pluginSchema>;

/** How data sources of a type are read whose wire protocol has no public description. */
export const bindingSchema = z.strictObject({
  profile: z.string().min(1).optional().describe("File with the profile of its protocol, from this file's folder"),
  plugin: pluginSchema.optional().describe("Plugin that reads it, where no profile is named"),
});
export type Binding = z.infer<typeof bindingSchema>;

/** `bindings` of the settings file. */
export const bindingsSchema = z.strictObject(
  Object.fromEntries(
    BOUND_TYPES.map((type) => [type, bindingSchema.optional().describe(`How data sources of the type ${type} are read`)]),
  ) as { [T in BoundType]: z.ZodOptional<typeof bindingSchema> },
);
export type Bindings = z.infer<typeof bindingsSchema>;

/** What is missing where a type has no binding, and which roads there are. The one place that says it. Pure. */
export const unboundWords = (type: BoundType): string =>
  `${type} has no public protocol, and the settings do not say how it is read: bindings.${type} is missing in collector.yaml. ` +
  `Set bindings.${type}.profile to a profile of the device's frames (docs/profiles.md; \`collector profile check FILE\` looks it over), ` +
  `or bindings.${type}.plugin to a program that reads it (docs/plugin-protocol.md; \`collector plugin check\` tries it), ` +
  "or read the machine through a protocol that it also has, such as OPC UA";
