import { unboundWords } from "../../src/model/binding.ts";
import { FaultError } from "../../src/model/fault.ts";
import type { BoundType } from "../../src/model/profile-details.ts";
import { ReasonError } from "../../src/model/reason.ts";
import { type Warning, warning } from "../../src/model/warning.ts";
import { type AnyDriver, type DriverContext, defineDriver, type Limits } from "../driver.ts";
import { resolveHost } from "../lib/resolve.ts";
import type { ProfileSettings } from "../profile/settings.ts";
import { HELLO_MS } from "./contract.ts";
import { PluginEnds } from "./ends.ts";
import { PluginLink } from "./link.ts";
import { connectPlugin, runPlugin } from "./pipe.ts";
import { plan, planSteps } from "./plan.ts";
import { type PluginAddress, type PluginRequest, PluginSession } from "./session.ts";

type Place = { readonly host: string; readonly port: number };
type Plugin = NonNullable<ProfileSettings["plugin"]>;

/** In a capture, of what the collector and the plugin say to each other: it is not what the device gets. */
const PLUGIN_AT = "127.0.0.1";

/** Characters of an address. */
const MAX_ADDRESS = 1000;

/** What `collector flows` has in the place of the encryption. */
export const FLOW_WORDS = "not known: a plugin's, which passes no fence";

const nameOf = ({ command, socket }: Plugin): string => socket ?? command?.join(" ") ?? "";

/** What status shows while a plugin reads a source. Pure. */
export const pluginWarnings = (plugin: Plugin): readonly Warning[] => [
  warning(
    "plugin_unfenced",
    `a plugin (${nameOf(plugin)}) reads this source: what it sends to the device passes no fence of the collector`,
  ),
  ...(plugin.command
    ? [
        warning(
          "plugin_has_rights",
          "the plugin runs as the collector's own user and can read what the collector can; on a device set plugin.socket (collector plugin unit)",
        ),
      ]
    : []),
];

/** A driver of a type without a public protocol, which is also read by a plugin where the settings name one. */
export function withPlugin(profile: AnyDriver): AnyDriver {
  const type = profile.type as BoundType;
  const plugin = pluginDriver(type, profile);
  const of = (settings: unknown): AnyDriver => (isByPlugin(settings as ProfileSettings) ? plugin : profile);
  const ofAddress = (address: unknown): AnyDriver =>
    typeof address === "object" && address !== null && "pluginText" in address ? plugin : profile;
  return {
    ...profile,
    endpoint: (details, settings) => of(settings).endpoint(details, settings),
    listensAt: (details, settings) => of(settings).listensAt?.(details, settings),
    encryption: (details, settings) => of(settings).encryption?.(details, settings) ?? "none",
    warningsOf: (details, settings) => of(settings).warningsOf?.(details, settings) ?? [],
    problemOf: (details, settings) => of(settings).problemOf?.(details, settings),
    parseAddress: (text, wanted, settings) => of(settings).parseAddress(text, wanted, settings),
    describe: (request) => ofAddress(request.points[0]?.address).describe?.(request) ?? "",
    plan: (points, limits, apart) => ofAddress(points[0]?.address).plan(points, limits, apart),
    *planSteps(points, limits, apart) {
      const driver = ofAddress(points[0]?.address);
      return driver.planSteps ? yield* driver.planSteps(points, limits, apart) : driver.plan(points, limits, apart);
    },
    connect: (input, ctx) => of(input.settings).connect(input, ctx),
  };
}

/** A source's own profile wins over the plugin that its type is bound to. */
const isByPlugin = ({ plugin, profile }: ProfileSettings): boolean => plugin !== undefined && profile === undefined;

function pluginDriver(type: BoundType, { title, details, settings: schema }: AnyDriver): AnyDriver {
  return defineDriver<unknown, unknown, PluginAddress, PluginRequest, Limits>({
    type,
    title,
    details,
    settings: schema,
    maxConnections: 1,
    canDiscover: true,
    endpoint: (given) => ({ ...placeOf(given), transport: "tcp" }),
    encryption: () => FLOW_WORDS,
    keepsConnection: () => true,
    warningsOf: (_given, settings) => pluginWarnings(boundOf(settings)),
    problemOf(_given, settings) {
      const { command, socket } = boundOf(settings);
      if ((command === undefined) !== (socket === undefined)) return undefined;
      return { condition: "configuration_invalid", detail: `plugin of ${type}: set one of command and socket` };
    },
    parseAddress(text, wanted) {
      if (text.length === 0 || text.length > MAX_ADDRESS)
        throw new FaultError("address_invalid", `an address of ${text.length} characters; a plugin takes 1 to ${MAX_ADDRESS}`);
      return { address: { pluginText: text }, type: wanted ?? { scalar: "auto" } };
    },
    describe: ({ points }) => `plugin: ${points.length} variables from ${points[0]?.address.pluginText ?? "none"}`,
    plan,
    planSteps,
    connect: ({ details: given, settings }, ctx) => openPlugin(type, given as Place, settings as ProfileSettings, ctx),
  });
}

const placeOf = (details: unknown): Place => {
  const { host, port } = details as Place;
  return { host, port };
};

const boundOf = (settings: unknown): Plugin => (settings as ProfileSettings).plugin ?? {};

async function openPlugin(type: BoundType, details: Place, settings: ProfileSettings, ctx: DriverContext): Promise<PluginSession> {
  const { plugin, parameters } = settings;
  const { command, socket } = plugin ?? {};
  // The host is looked up here, so that a plugin is not even started for one that the policy forbids.
  const addresses = (await resolveHost(details.host, ctx)).map(({ address }) => address);
  const ends = new PluginEnds(ctx.device, ctx.log);
  const link = new PluginLink(
    (events) => {
      if (socket !== undefined) return connectPlugin(socket, events);
      if (command) return runPlugin(command, events);
      throw new ReasonError("UNKNOWN", unboundWords(type), { condition: "type_not_supported" });
    },
    ctx.tap,
    ctx.wire?.opening({ transport: "tcp", address: PLUGIN_AT, port: details.port }),
    (why) => ends.note(why),
  );
  const hello = await link.hello(HELLO_MS, ctx.signal);
  return PluginSession.open(link, hello, { type, details, addresses, settings: parameters }, ends, ctx);
}
