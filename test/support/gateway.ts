import { type AnySession, type DriverContext, type Point, typeOf } from "../../drivers/driver.ts";
import driver from "../../drivers/vendor_gateway/driver.ts";
import type { Reading } from "../../src/model/value.ts";
import { driverContext } from "./driver-context.ts";

/** How a test reads through a gateway; what is absent is as in a lab: this machine, `Plant.OpcDa.1`, no security. */
export interface GatewayAsk {
  readonly target?: object;
  readonly local?: object;
  readonly secret?: string;
  readonly ctx?: DriverContext;
}

export const connectGateway = (port: number, { target, local = {}, secret, ctx = driverContext() }: GatewayAsk = {}): Promise<AnySession> =>
  driver.connect(
    {
      details: driver.details.parse({
        type: "vendor_gateway",
        host: "127.0.0.1",
        port,
        protocol_details: target ?? { protocol: "OPC_DA", server_name: "Plant.OpcDa.1" },
      }),
      settings: driver.settings.parse(local),
      secrets: secret === undefined ? {} : { password: secret },
    },
    ctx,
  );

/** `Press.Force` or `Press.Force::float64`: names may have colons. */
export const gatewayPoints = (texts: readonly string[]): Point[] =>
  texts.map((text, index) => {
    const [name = "", word] = text.split("::");
    return { index, ...driver.parseAddress(name, word === undefined ? undefined : typeOf(driver, word), driver.settings.parse({})) };
  });

/** Looked up and read: a reading or the refusal's words for each, in their order. */
export async function readGateway(
  session: AnySession,
  texts: readonly string[],
  ctx = driverContext(),
): Promise<readonly (Reading | string)[]> {
  const points = gatewayPoints(texts);
  const results: (Reading | string)[] = [];
  const ready: Point[] = [];
  for await (const batch of session.prepare?.(points, ctx) ?? [])
    for (const one of batch)
      if ("address" in one) ready.push({ index: one.point.index, address: one.address, type: one.type });
      else results[one.point.index] = `${one.refusal.fault}: ${one.refusal.message}`;
  const requests = driver.plan(ready, session.limits);
  for (let at = 0; at < requests.length; at += session.limits.inFlight)
    await Promise.all(
      requests.slice(at, at + session.limits.inFlight).map(async (request) => {
        const readings = await session.read(request, ctx);
        for (const [i, { index }] of request.points.entries()) results[index] = readings[i] ?? "nothing";
      }),
    );
  return results;
}
