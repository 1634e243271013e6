import * as z from "zod";
import "./words/issue-words.ts";
import { parseDuration } from "../base/duration.ts";
import { bindingsSchema } from "./binding.ts";
import { networkSchema } from "./policy.ts";
import { uuidSchema } from "./uuid.ts";

/** `longest` keeps what becomes a timer within what a timer can do. */
const duration = (fallback: string, longest = "24h") =>
  durationText(longest)
    .default(fallback)
    .transform((text) => parseDuration(text) ?? 0);
const durationText = (longest: string) =>
  z
    .string()
    .refine((text) => parseDuration(text) !== undefined, "expected a duration such as 250ms, 5s, 2min, 1h or 30d")
    .refine((text) => {
      const [ms, longestMs] = [parseDuration(text), parseDuration(longest)];
      return ms === undefined || longestMs === undefined || (ms > 0 && ms <= longestMs);
    }, `expected a duration above zero and at most ${longest}`);

const SIZES: Readonly<Record<string, number>> = { B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 };
const parseSize = (text: string): number | undefined => {
  const match = /^(\d{1,9})\s*(B|KiB|MiB|GiB)$/.exec(text.trim());
  const unit = match?.[2] === undefined ? undefined : SIZES[match[2]];
  return unit === undefined ? undefined : Number(match?.[1]) * unit;
};
/** Bytes, written `512MiB`. `most`: absent for any. */
const sizeText = (least: string, most?: string) =>
  z.string().refine(
    (text) => {
      const bytes = parseSize(text) ?? 0;
      return bytes >= (parseSize(least) ?? 0) && (most === undefined || bytes <= (parseSize(most) ?? 0));
    },
    `expected a size such as 512MiB or 2GiB, at least ${least}${most === undefined ? "" : ` and at most ${most}`}`,
  );

export const size = (fallback: string, least = "1KiB", most?: string) =>
  sizeText(least, most)
    .default(fallback)
    .transform((text) => parseSize(text) ?? 0);

const listen = z
  .string()
  .regex(/^(\[[0-9a-fA-F:.]+\]|[^:\s]+):\d{1,5}$/, { error: "expected address:port, for example 127.0.0.1:8420", abort: true })
  .refine((text) => Number(text.slice(text.lastIndexOf(":") + 1)) <= 65_535 && !text.endsWith(":0"), "the port is not within 1 and 65535");

const unit = z.enum(["seconds", "milliseconds"]);

/** Of an entry whose password is on this machine. */
export const passwordNetworksSchema = z
  .array(networkSchema)
  .max(100)
  .optional()
  .describe(
    "Networks within which the configuration API may move the host that a password of this machine goes to; elsewhere it waits for `collector secret confirm`",
  );

const report = z.enum(["all", "changes"]);
const deadband = z.number().min(0).max(1e300);
const deadbandPercent = z.number().min(0).max(100);

/** The local settings of every source, whatever its type; the driver adds its own options to these. */
export const sourceSettingsSchema = z.strictObject({
  interval: z
    .string()
    .refine((text) => (parseDuration(text) ?? 0) > 0, "expected a duration above zero such as 250ms or 5s")
    .transform((text) => parseDuration(text) ?? 0)
    .optional()
    .describe("Readout interval; wins over the API's readout_interval"),
  name_timeout: duration("5s").describe("Deadline of a name look-up; running out of it is LOOKUP_ERROR"),
  connect_timeout: duration("5s").describe("Deadline of a connect; below 3.1s a failed ARP shows as TIMEOUT"),
  answer_timeout: duration("3s").describe("Deadline of one request"),
  prepare_timeout: duration("60s").describe("Deadline of looking up addresses (symbols, paths) in one readout; what was found is kept"),
  forget_habits_after: duration("30d", "3650d").describe(
    "How long what was learned of the way in which the device wants to be asked (a pause, smaller blocks) is kept where it is not seen any more",
  ),
  max_connections: z.int().min(1).max(64).optional().describe("Connections the device takes at once; default: the driver's"),
  report: report
    .default("all")
    .describe("Values that a source reports: `all` of each readout, or only `changes` (and always bad values and the next good ones)"),
  deadband: deadband
    .default(0)
    .describe("With report: changes, a number is reported where it differs from the one reported last by more than this"),
  deadband_percent: deadbandPercent.default(0).describe("The same in percent of the number reported last; the larger of both counts"),
  heartbeat: duration("10min", "7d").describe("With report: changes, the longest time without a report of a value"),
  key_readouts: duration("1h", "7d").describe("With report: changes, how often a readout reports all values"),
  report_variables: z
    .record(
      z.string().min(1).max(255),
      z.strictObject({
        report: report.optional(),
        deadband: deadband.optional(),
        deadband_percent: deadbandPercent.optional(),
        heartbeat: durationText("7d")
          .transform((text) => parseDuration(text) ?? 0)
          .optional(),
      }),
    )
    .optional()
    .describe("The same for variables by name, in which * stands for any text; the first that matches counts"),
  password_file: z.string().min(1).optional().describe("File that holds the password of this source, one line"),
  password_networks: passwordNetworksSchema,
});

const LOOPBACK = new Set(["localhost", "127.0.0.1", "[::1]"]);
const isLoopbackHost = (host: string): boolean => LOOPBACK.has(host.toLowerCase()) || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(host);

function isProxyAddress(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return url !== undefined && /^https?:$/.test(url.protocol) && url.hostname !== "" && /^\/?$/.test(url.pathname + url.search + url.hash);
}

export const apiSettingsSchema = z
  .strictObject({
    url: z
      .url({ protocol: /^https?$/, error: "Invalid URL; expected one such as https://api.example", abort: true })
      .describe("Base address of the configuration API; /api/v2/… is appended"),
    key_file: z.string().min(1).describe("File that holds the API key, one line"),
    authorization: z
      .enum(["bare", "bearer"])
      .optional()
      .describe("Form of the Authorization header; absent: the bare key, and once Bearer after a 401"),
    poll_interval: duration("10s").describe("How often the collector polls the configuration"),
    tls: z
      .strictObject({
        ca_file: z
          .string()
          .min(1)
          .optional()
          .describe("File with the authorities to trust (PEM), instead of those that Node and the system know; a new one is taken over"),
        cert_file: z.string().min(1).optional().describe("Certificate of this collector, for an API that asks for one (PEM)"),
        key_file: z.string().min(1).optional().describe("File with the certificate's private key (PEM, without a passphrase)"),
      })
      .refine(
        (tls) => (tls.cert_file === undefined) === (tls.key_file === undefined),
        "cert_file and key_file go together; set both or none",
      )
      .optional()
      .describe("TLS towards the API"),
    proxy: z
      .string()
      .refine((text) => isProxyAddress(text), "expected an address such as http://proxy.example:3128 or http://user@proxy.example:3128")
      .refine(
        (text) => !isProxyAddress(text) || new URL(text).password === "",
        "holds a password; put it in a file, and name that in proxy_password_file",
      )
      .optional()
      .describe("HTTP proxy on the way to the API; absent: HTTPS_PROXY and NO_PROXY of the environment count"),
    proxy_password_file: z.string().min(1).optional().describe("File with the password of the proxy's user, one line"),
    insecure: z.boolean().default(false).describe("Send the key over plain http to another host than this one"),
  })
  .refine(
    ({ url, insecure }) => {
      const { protocol, hostname } = new URL(url);
      return insecure || protocol === "https:" || LOOPBACK.has(hostname);
    },
    {
      path: ["url"],
      message: "plain http would show the API key to the network; use https, or set insecure: true next to it",
    },
  )
  .refine(
    ({ proxy, proxy_password_file }) =>
      proxy_password_file === undefined || (isProxyAddress(proxy ?? "") && new URL(proxy ?? "").username !== ""),
    {
      path: ["proxy_password_file"],
      message: "belongs to the user that proxy names, as in http://user@proxy.example:3128",
    },
  );

export const embeddedApiSettingsSchema = z
  .strictObject({
    listen: listen
      .default("127.0.0.1:8420")
      .describe("Address and port of the embedded configuration API; off loopback it needs tls, or insecure: true"),
    tls: z
      .strictObject({
        cert_file: z.string().min(1).describe("File with the certificate and what leads to its authority (PEM); a new one is taken over"),
        key_file: z.string().min(1).describe("File with the certificate's private key (PEM)"),
      })
      .optional()
      .describe("TLS of the embedded configuration API; absent: plain http"),
    insecure: z.boolean().default(false).describe("Serve keys and passwords over plain http to other machines; status shows it"),
    poll_interval: duration("500ms").describe("How often the collector asks its own embedded API for changes"),
    values: z
      .strictObject({
        max_bytes: size("1GiB").describe("Bound of the values that platform sinks send to the embedded API"),
        max_age: duration("30d", "3650d").describe("Older ones are dropped"),
      })
      .prefault({})
      .describe("What the embedded API keeps of values"),
  })
  .refine(
    ({ listen: address, tls, insecure }) => insecure || tls !== undefined || isLoopbackHost(address.slice(0, address.lastIndexOf(":"))),
    {
      path: ["listen"],
      message: "other machines would see keys and passwords in plain http; name a certificate in tls, or set insecure: true next to it",
    },
  );

export const pageSettingsSchema = z
  .strictObject({
    enabled: z.boolean().default(true).describe("Whether the collector serves its status as a page for browsers"),
    listen: listen
      .default("127.0.0.1:8090")
      .describe("Address and port of the page; off loopback it needs tls and token_file, and policy.yaml must open it too"),
    token_file: z
      .string()
      .min(1)
      .optional()
      .describe("File that holds the token which opens the page, one line of at least 16 characters; absent: it is open on loopback"),
    tls: z
      .strictObject({
        cert_file: z.string().min(1).describe("File with the certificate and what leads to its authority (PEM); a new one is taken over"),
        key_file: z.string().min(1).describe("File with the certificate's private key (PEM)"),
      })
      .optional()
      .describe("TLS of the page; absent: plain http"),
    trends: z
      .strictObject({
        max_bytes: size("16MiB", "0B", "1GiB").describe(
          "Memory for the numbers of the last 24 hours, 17 KB a variable, so that 16MiB hold 970 variables; 0B keeps none",
        ),
        variables: z
          .array(z.string().regex(/^[^/]+\/.+$/, "expected SOURCE/VARIABLE by name, for example press-1/* or */temperature"))
          .max(100)
          .optional()
          .describe("Variables that come first where not all fit, SOURCE/VARIABLE by name, in which * stands for any text"),
      })
      .prefault({})
      .describe("Trends on the page: first these variables, then those that somebody looked at, then the others by name"),
  })
  .refine(
    ({ listen: address, tls, token_file: token }) =>
      (tls !== undefined && token !== undefined) || isLoopbackHost(address.slice(0, address.lastIndexOf(":"))),
    {
      path: ["listen"],
      message:
        "other machines would see the page without a token, or the token in plain http; name a certificate in tls and a file in token_file, or use a loopback address",
    },
  );

/** The settings file, `collector.yaml`. Strict: an unknown key is an error that names it. */
export const settingsSchema = z
  .strictObject({
    collector: uuidSchema
      .optional()
      .describe("This collector's uuid in the configuration API; required with api.url, made once and kept in state_dir otherwise"),
    state_dir: z
      .string()
      .min(1)
      .default("/var/lib/collector")
      .describe("Folder for buffer, last good configuration, keys and the local socket"),
    api: apiSettingsSchema.optional().describe("The platform's configuration API; absent: the embedded one"),
    embedded_api: embeddedApiSettingsSchema.prefault({}).describe("The configuration API that the collector carries itself"),
    readout_interval_unit: unit.default("seconds").describe("Unit of readout_interval in the API"),
    publish_interval_unit: unit.default("seconds").describe("Unit of publish_interval in the API"),
    variables_dir: z
      .string()
      .min(1)
      .optional()
      .describe(
        "Folder with local variable files, <data source uuid or name>.csv or .yaml; default: variables in the folder of the settings file",
      ),
    buffer: z
      .strictObject({
        max_bytes: sizeText("1MiB")
          .transform((text) => parseSize(text) ?? 0)
          .optional()
          .describe(
            "Bound of the buffer's file with its WAL, at least 1MiB; default: half of what it has and the disk has free, between 64MiB and 16GiB",
          ),
        max_age: duration("30d", "3650d").describe("Older values are dropped and counted"),
        warn_below: duration("12h", "3650d").describe(
          "Values wait, and at today's rate less than this is left until the oldest are dropped: a warning in status, log and metrics",
        ),
        keep_removed: duration("24h", "3650d").describe(
          "How long the values that wait for a removed data sink are kept in case it returns; they are the first to go when room is needed",
        ),
      })
      .prefault({})
      .describe("The durable buffer"),
    http: z
      .strictObject({
        listen: listen
          .default("127.0.0.1:9420")
          .describe("Address and port of /metrics, /healthz and /readyz; off loopback policy.yaml must open it too"),
        source_series: z
          .int()
          .min(0)
          .max(1000)
          .default(200)
          .describe(
            "Up to so many data sources each has metrics of its own; of more only those that fail, have faulted variables or skip readouts",
          ),
      })
      .prefault({})
      .describe("Metrics and health over HTTP, for who watches this machine"),
    page: pageSettingsSchema.prefault({}).describe("The status as a page for a browser: it only reads"),
    captures: z
      .strictObject({
        source_bytes: size("64KiB", "0B")
          .refine((bytes) => bytes === 0 || (bytes >= 2 ** 12 && bytes <= 2 ** 20 && bytes % 8 === 0), "expected 0B, or 4KiB to 1MiB")
          .describe("Memory for what a connection exchanged last, 4KiB to 1MiB; 0B keeps nothing"),
        total_bytes: size("8MiB", "1MiB").describe(
          "Memory for all connections together; where they do not fit, each has the same part of it",
        ),
        files_bytes: size("16MiB", "0B").describe(
          "Room for the files of failed data sources in state_dir/captures, of which the oldest go; 0B writes none",
        ),
      })
      .prefault({})
      .describe("What data sources and the collector exchanged last, for collector capture"),
    log: z
      .strictObject({
        level: z.enum(["debug", "info", "warn", "error"]).default("info").describe("Least level that is written"),
        format: z
          .enum(["auto", "text", "json"])
          .default("auto")
          .describe("auto: coloured text on a terminal, text with <prio> under journald"),
      })
      .prefault({})
      .describe("The log"),
    bindings: bindingsSchema
      .prefault({})
      .describe("How data sources are read whose protocol is not public, by their type; a source's own profile or plugin wins"),
    sources: z
      .record(z.string(), z.record(z.string(), z.unknown()))
      .default({})
      .describe("Local options by data source uuid or name; which ones: see its driver"),
    sinks: z
      .record(z.string(), z.record(z.string(), z.unknown()))
      .default({})
      .describe("Local options by data sink uuid or name; which ones: see its kind"),
  })
  .refine(({ api, collector }) => api === undefined || collector !== undefined, {
    path: ["collector"],
    message: "is required with api.url: the uuid that the API knows this collector by",
  });

export type Settings = z.infer<typeof settingsSchema>;
