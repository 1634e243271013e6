import path from "node:path";
import type { Log } from "../model/context.ts";
import type { Kept } from "../model/kept.ts";
import { uuidSchema } from "../model/uuid.ts";
import { type KeptFile, KeptValues, readKept } from "./kept-values.ts";

/** Beside the last good configuration. */
export const keptOfSourcesFile = (stateDir: string): string => path.join(stateDir, "kept-of-sources.json");

const fileOf = (stateDir: string): KeptFile => ({
  path: keptOfSourcesFile(stateDir),
  field: "sources",
  owner: uuidSchema,
  title: "what is kept of the data sources",
  unreadable:
    "what was kept of the data sources cannot be read: OPC UA addresses with ns= are held to mean the namespaces that the servers have now",
});

/** What drivers keep of data sources, by uuid. Throws Error where the file is there and cannot be used. */
export const readKeptOfSources = (stateDir: string): Readonly<Record<string, Kept["values"]>> => readKept(fileOf(stateDir));

/** A file of the state folder for what drivers keep of data sources over restarts, by uuid. */
export const keptOfSources = (stateDir: string, log: Log): KeptValues => new KeptValues(fileOf(stateDir), log);
