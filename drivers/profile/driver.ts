import type { z } from "zod";
import { unboundWords } from "../../src/model/binding.ts";
import { FaultError } from "../../src/model/fault.ts";
import type { Profile } from "../../src/model/profile.ts";
import type { BoundType } from "../../src/model/profile-details.ts";
import { type Warning, warning } from "../../src/model/warning.ts";
import { type AnyDriver, type DriverContext, defineDriver, type Limits } from "../driver.ts";
import { resolveHost } from "../lib/resolve.ts";
import { openTcp } from "../lib/tcp.ts";
import { quote } from "../lib/text.ts";
import { type ProfileAddress, parseAddress } from "./address.ts";
import { type Compiled, compile, type DetailFields, parameterProblems } from "./compiled.ts";
import { expectPeer } from "./listener.ts";
import { describeRequest, type ProfileRequest, plan, planSteps } from "./plan.ts";
import { ProfileSession } from "./session.ts";
import { type ProfileSettings, settingsSchema } from "./settings.ts";

/** A type of the API that is read by a profile. */
export interface BoundDriver<D extends { readonly host: string; readonly port: number }> {
  readonly type: BoundType;
  readonly title: string;
  readonly details: z.ZodType<D>;
  /** Fields of the details that a profile may use, each as one of `DETAIL_VALUES`. Pure. */
  fieldsOf(details: D): DetailFields;
  /** Who connects, where the details say it; undefined: the profile says. */
  roleOf?(details: D): "client" | "listener";
  /** See `Driver.warningsOf`. */
  warningsOf?(details: D): readonly Warning[];
}

/** What status shows of where a profile was tried. */
export const verifiedWords = ({ name, verified_on }: Profile): string =>
  verified_on.length === 0
    ? `the profile ${name} has been verified on no device (verified_on is empty): compare values with the machine's own display`
    : `the profile ${name} was verified on ${verified_on.join(", ")}`;

/** The driver of a type whose protocol is a profile of the settings. */
export function profileDriver<D extends { readonly host: string; readonly port: number }>(bound: BoundDriver<D>): AnyDriver {
  const { type, title, details } = bound;
  return defineDriver<D, ProfileSettings, ProfileAddress, ProfileRequest, Limits>({
    type,
    title,
    details,
    settings: settingsSchema,
    maxConnections: 1,
    canDiscover: true,
    endpoint: ({ host, port }) => ({ host, port, transport: "tcp" }),
    keepsConnection: () => true,
    listensAt: (given, settings) => (settings.profile?.role === "listener" ? placeOf(given, settings) : undefined),
    warningsOf: (given, { profile }) => [
      ...(bound.warningsOf?.(given) ?? []),
      ...(profile ? [warning(profile.verified_on.length === 0 ? "profile_unverified" : "profile_verified", verifiedWords(profile))] : []),
    ],
    problemOf(given, settings) {
      const { profile } = settings;
      if (!profile) return { condition: "type_not_supported", detail: unboundWords(type) };
      const problems = [
        ...profileProblems(bound, given, profile),
        ...parameterProblems(profile, bound.fieldsOf(given), settings.parameters),
      ];
      return problems.length === 0 ? undefined : { condition: "configuration_invalid", detail: problems.join("; ") };
    },
    parseAddress(text, wanted, { profile, encoding }) {
      if (!profile) throw new FaultError("address_invalid", `${quote(text)} has no meaning yet: ${unboundWords(type)}`);
      const { address, type: settled } = parseAddress(text, wanted, profile);
      return { address: { ...address, encoding }, type: settled };
    },
    describe: describeRequest,
    plan,
    planSteps,
    async connect({ details: given, settings }, ctx) {
      const { profile, parameters } = settings;
      if (!profile) throw new FaultError("address_invalid", unboundWords(type));
      const compiled = compile(profile, bound.fieldsOf(given), parameters);
      if (profile.role === "listener") return listen(compiled, given, settings, ctx);
      const connection = await openTcp({ host: given.host, port: given.port, transport: "tcp" }, ctx);
      return ProfileSession.overConnection(connection, compiled, ctx);
    },
  });
}

type Place = { readonly host: string; readonly port: number };

/** The place where a device that connects by itself is expected: the port of its data source on every address, unless the settings name one. */
const placeOf = ({ port }: Place, { listen: at }: Pick<ProfileSettings, "listen">): string => at ?? `0.0.0.0:${port}`;

async function listen(compiled: Compiled, details: Place, settings: ProfileSettings, ctx: DriverContext): Promise<ProfileSession> {
  const addresses = await resolveHost(details.host, ctx);
  const peers = [...addresses.map(({ address }) => address), ...settings.peers];
  const peer = await expectPeer({ at: placeOf(details, settings), from: details.host, peers }, compiled, ctx);
  const link = await peer.link(ctx).catch((error: unknown) => {
    peer.release(undefined);
    throw error;
  });
  return ProfileSession.atPeer({ peer, link }, compiled, ctx);
}

/** Why a profile is not for these details. */
function profileProblems<D extends { readonly host: string; readonly port: number }>(
  { type, roleOf }: BoundDriver<D>,
  details: D,
  profile: Profile,
): readonly string[] {
  const problems: string[] = [];
  if (!profile.for.includes(type)) problems.push(`the profile ${profile.name} is for ${profile.for.join(", ")}, not for ${type}`);
  const role = roleOf?.(details);
  if (role !== undefined && role !== profile.role)
    problems.push(`the data source needs a ${role}, and the profile ${profile.name} is a ${profile.role}`);
  return problems;
}
