import { FILE_IN, FILE_OUT, JSON_ARRAY, type VerbGroup } from "../verb.ts";
import type { ApiTaskOptions } from "./api.ts";
import type { RestoreOptions } from "./restore.ts";

/** `collector api key …`. */
const KEY_VERBS: VerbGroup = {
  name: "key",
  description: "Create, list and revoke keys of the embedded API.",
  verbs: [
    {
      usage: "create",
      description: "Create a key and print it once.",
      examples: [
        "collector api key create --role admin --name laptop",
        "collector api key create --role collector --collector 6f2a1d1e-4b0d-4a57-9d51-7f0c6d1f0a01",
      ],
      options: [
        { flags: "--role <role>", description: "admin or collector", required: true },
        { flags: "--collector <uuid>", description: "the collector of a collector key" },
        { flags: "--name <text>", description: "owner of the key, for the list and the audit trail" },
      ],
      run: async (io, options: ApiTaskOptions & { role: string; collector?: string; name?: string }) =>
        (await import("./api.ts")).keyCreate(options, io),
    },
    {
      usage: "list",
      description: "List the keys, never their secrets.",
      examples: ["collector api key list"],
      json: JSON_ARRAY,
      run: async (io, options: ApiTaskOptions) => (await import("./api.ts")).keyList(options, io),
    },
    {
      usage: "revoke <id>",
      description: "Revoke a key at once.",
      args: { id: "number of the key, as api key list shows it" },
      examples: ["collector api key revoke 3", "collector api key revoke 1 --yes"],
      options: [{ flags: "--yes", description: "revoke this machine's own key without asking; needed with --json and without a terminal" }],
      run: async (io, id: string, options: ApiTaskOptions & { yes?: boolean }) => (await import("./api.ts")).keyRevoke(id, options, io),
    },
  ],
};

/** `collector api …`. */
export const API_VERBS: VerbGroup = {
  name: "api",
  description: "Keys, audit trail, records and backups of the embedded configuration API, on its own machine.",
  verbs: [
    KEY_VERBS,
    {
      usage: "audit",
      description: "Show who changed what, newest first.",
      examples: ["collector api audit --limit 20"],
      json: JSON_ARRAY,
      options: [{ flags: "--limit <n>", description: "how many", default: "50" }],
      run: async (io, options: ApiTaskOptions & { limit: string }) => (await import("./api.ts")).audit(options, io),
    },
    {
      usage: "backup [file]",
      description: "Write a backup of the configuration. The service writes one each day, and some minutes after a change.",
      args: { file: "where to write it; without it, among those of the state folder" },
      examples: ["collector api backup", "collector api backup /media/stick/collector.json", "collector api backup --list"],
      json: "print one JSON object, and one JSON array with --list",
      options: [{ flags: "--list", description: "list the existing backups" }],
      run: async (io, file: string | undefined, options: ApiTaskOptions & { list?: boolean }) =>
        (await import("./api.ts")).backup(file, options, io),
    },
    {
      usage: "export [file]",
      description: "Write every record as JSON, as the API answers it, without secrets.",
      args: { file: FILE_OUT },
      examples: ["collector api export configuration.json"],
      notes: `import and restore take the file. A backup is the same file, and has in addition what only this machine can use: hashes of the
API keys, encrypted secrets, and the audit trail.`,
      run: async (io, file: string | undefined, options: ApiTaskOptions) => (await import("./api.ts")).exportAll(file, options, io),
    },
    {
      usage: "import <file>",
      description: "Import records of another server of this API, with their uuids; all of them or none.",
      args: { file: FILE_IN },
      examples: [
        "collector api import configuration.json --dry-run",
        "curl … $API/v2/data-sources > sources.json && collector api import sources.json --adopt",
      ],
      options: [
        { flags: "--dry-run", description: "show what would be done, and do nothing" },
        { flags: "--adopt", description: "give all records to this machine's own collector" },
      ],
      notes: `The file is what export writes ({"data_sources": […], "data_sinks": […], …}) or a page as the API answers it. Values that only a
read shows are imported too, such as X509Certificate, OTHER, passive and protocol_override. Records that are not in the file stay
unchanged. The file has no passwords: set them with collector source set NAME --password-file FILE, or collector secret set.`,
      run: async (io, file: string, options: ApiTaskOptions & { dryRun?: boolean; adopt?: boolean }) =>
        (await import("./api.ts")).importAll(file, options, io),
    },
    {
      usage: "restore [file]",
      description: "Restore a backup (default: the newest); the service must be stopped.",
      args: { file: "backup to restore; api backup --list names the existing ones" },
      examples: [
        "sudo systemctl stop collector && sudo collector api restore",
        "sudo collector api restore /media/stick/collector.json --yes",
        "sudo collector api restore --from-last-good",
      ],
      options: [
        { flags: "--from-last-good", description: "restore the configuration that the collector keeps, instead of a backup" },
        { flags: "--yes", description: "restore without asking; needed with --json and without a terminal" },
      ],
      notes: `Shows age and counts of the backup, of the database that it replaces and of the kept configuration (last-good.json), then asks. The last
five copies of what was replaced stay: the database as api.db.replaced-…, the kept configuration as last-good.json.replaced-….
The file may also be what export writes: keys and stored secrets then come from the replaced database. Backups that versions up to 0.2
wrote (.db) can still be restored.
--from-last-good restores data sources, data sinks and variables; keys and stored secrets come from the replaced database or, if that
cannot be read, from the newest backup.`,
      run: async (io, file: string | undefined, options: RestoreOptions) => (await import("./restore.ts")).restore(file, options, io),
    },
  ],
};
