import * as z from "zod";
import "./words/issue-words.ts";

function isRange(text: string): boolean {
  if (!/^\d{1,5}(-\d{1,5})?$/.test(text)) return false;
  const [from = 0, to = from] = text.split("-").map(Number);
  return from >= 1 && from <= to && to <= 65_535;
}

/** An address or a network. */
export const networkSchema = z.union([z.cidrv4(), z.cidrv6(), z.ipv4(), z.ipv6()], {
  error: "expected an address or a network such as 10.0.0.5, 192.168.0.0/16 or fd00::/8",
});
const PORT = "expected a port such as 502, or a range such as 4840-4850";
const port = z.union([z.number(), z.string()], { error: PORT }).refine((given) => isRange(String(given)), PORT);

const reach = (what: string) =>
  z
    .strictObject({
      networks: z
        .array(networkSchema)
        .optional()
        .describe(
          `Where ${what} may be; names are judged by their address at each connect. Absent: anywhere but loopback, this machine's own, link-local, multicast and metadata addresses`,
        ),
      loopback: z
        .boolean()
        .default(false)
        .describe(`Whether ${what} may be on this machine's loopback addresses (127.0.0.0/8, ::1), in addition to networks`),
      ports: z.array(port).optional().describe("On which ports; absent: on any"),
    })
    .prefault({});

/** The policy file, `policy.yaml`: where this machine may connect and listen, whatever the configuration API says (design/api-decisions). Strict. */
export const policySchema = z.strictObject({
  sources: reach("data sources").describe("What the collector may read"),
  sinks: reach("data sinks").describe("What the collector may publish to"),
  listen: z.array(networkSchema).default(["127.0.0.0/8", "::1"]).describe("Addresses and networks on which the collector may listen"),
  discovery: z.boolean().default(true).describe("Whether devices may be asked what variables they have"),
  find: z
    .array(networkSchema)
    .default([])
    .describe("Networks in which a person may look for controllers with collector find; absent: in none"),
});

/** `file`: where it is, or would be, for words about it. */
export type Policy = z.infer<typeof policySchema> & { readonly file?: string };

/** Words for why an address may not be connected to; undefined: it may. */
export type Permit = (address: string, port: number) => string | undefined;
