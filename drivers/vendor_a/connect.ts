import type { VendorADetails } from "../../src/model/details.ts";
import type { ConnectInput, DriverContext, Endpoint, Session } from "../driver.ts";
import { SilentHelp } from "../lib/silent-help.ts";
import { openTcp } from "../lib/tcp.ts";
import { isOmron } from "./identity.ts";
import { CipLink } from "./link.ts";
import { OmronSession } from "./omron/session.ts";
import { FileSession } from "./pccc/session.ts";
import { findTarget } from "./route.ts";
import { CipSession } from "./session.ts";
import type { CipSettings } from "./settings.ts";
import type { AnyAddress, AnyRead, VendorALimits } from "./variants.ts";

export const endpointOf = ({ host, port }: VendorADetails): Endpoint => ({ host, port, transport: "tcp" });

/** A session with the kind of controller that is there. Throws ReasonError: session, route or connection is refused, in words that name the status. */
export async function connect(
  { details, settings }: ConnectInput<VendorADetails, CipSettings>,
  ctx: DriverContext,
): Promise<Session<AnyAddress, AnyRead, VendorALimits>> {
  const connection = await openTcp(endpointOf(details), ctx);
  const link = new CipLink(connection, ctx);
  const help = new SilentHelp(ctx.device);
  try {
    await link.register(ctx);
    const target = await findTarget(link, settings, help, ctx);
    if (target.files) return await FileSession.open(connection, link, target.files, help, ctx);
    if (target.identity && isOmron(target.identity))
      return await OmronSession.open(connection, link, target, { details, settings, help }, ctx);
    return await CipSession.open(connection, link, target, { settings, help }, ctx);
  } catch (error) {
    void link.close(ctx);
    throw error;
  }
}
