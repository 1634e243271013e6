import { JSON_ARRAY, type VerbGroup } from "../verb.ts";
import type { SecretOptions } from "./secret.ts";
import type { SecretConfirmOptions } from "./secret-confirm.ts";

/** `collector secret …`. */
export const SECRET_VERBS: VerbGroup = {
  name: "secret",
  description: "Keep the secrets of data sources and data sinks on this machine.",
  verbs: [
    {
      usage: "set <entry>",
      description: "Store a secret and hand it to the running service at once. The verb asks for it; it is never an argument.",
      args: { entry: "name or uuid of the data source or data sink; <entry>/users/<user> for a user of a hosted OPC UA server" },
      examples: [
        "sudo collector secret set press-1",
        "sudo collector secret set plant-broker --stdin < password.txt",
        "sudo collector secret set opcua-server/users/scada",
      ],
      options: [{ flags: "--stdin", description: "take the first line of stdin instead of asking" }],
      notes:
        "Encrypted if systemd has a TPM or a host key of this machine; readable by root alone in any case. With --json it does not ask.",
      run: async (io, entry: string, options: SecretOptions) => (await import("./secret.ts")).secretSet(entry, options, io),
    },
    {
      usage: "list",
      description: "List the owners of the stored secrets, never the secrets.",
      examples: ["sudo collector secret list"],
      json: JSON_ARRAY,
      run: async (io, options: SecretOptions) => (await import("./secret.ts")).secretList(options, io),
    },
    {
      usage: "confirm <entry>",
      description: "Let the password of this machine go where the configuration has the entry now.",
      args: { entry: "name or uuid of the data source or data sink, as status names it" },
      examples: ["sudo collector secret confirm press-1", "sudo collector secret confirm press-1 --yes --json"],
      options: [{ flags: "--yes", description: "confirm without asking; needed with --json and without a terminal" }],
      notes:
        "A password that is kept on this machine stays with the host, port, endpoint, user and security that it was set for. Where the configuration changes one of them, the password is withheld, status says so, and this verb shows both and waits for a decision. password_networks in the settings opens networks within which the host may change without a confirmation.",
      run: async (io, entry: string, options: SecretConfirmOptions) =>
        (await import("./secret-confirm.ts")).secretConfirm(entry, options, io),
    },
    {
      usage: "rm <entry>",
      description: "Delete a secret, here and in the running service.",
      args: { entry: "name or uuid, as secret list shows it" },
      examples: ["sudo collector secret rm press-1"],
      run: async (io, entry: string, options: SecretOptions) => (await import("./secret.ts")).secretRemove(entry, options, io),
    },
  ],
};
