import { JSON_ARRAY, type VerbGroup } from "../verb.ts";
import type { BufferOptions } from "./buffer.ts";

/** `collector buffer …`. */
export const BUFFER_VERBS: VerbGroup = {
  name: "buffer",
  description: "Recover damaged buffer files.",
  verbs: [
    {
      usage: "list",
      description: "List the files that were set aside: damaged ones, and those of a newer collector.",
      examples: ["sudo collector buffer list", "sudo collector buffer list --json"],
      json: JSON_ARRAY,
      notes:
        "damaged: not read yet. taken: what could be read of it is delivered from the new file. newer: a newer collector delivers it. waiting: the service delivers it. recovered: it was delivered, and can be removed.",
      run: async (io, options: BufferOptions) => (await import("./buffer.ts")).bufferList(options, io),
    },
    {
      usage: "recover <name>",
      description: "Let the service deliver what can be read of a file that was set aside, as older values.",
      args: { name: "name of the file, as buffer list shows it" },
      examples: ["sudo collector buffer recover buffer.db.damaged-20261122T101500Z"],
      notes:
        "The service begins within some seconds, or when it is started, and says in its log how many values it has found. Values that a sink had already may come twice; they count as read again. The file is kept.",
      run: async (io, name: string, options: BufferOptions) => (await import("./buffer.ts")).bufferRecover(name, options, io),
    },
  ],
};
