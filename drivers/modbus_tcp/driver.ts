import { DETAILS, type ModbusTcpDetails } from "../../src/model/details.ts";
import { sleep } from "../../src/model/timer.ts";
import type { Reading } from "../../src/model/value.ts";
import { type DriverContext, defineDriver } from "../driver.ts";
import { openTcp } from "../lib/tcp.ts";
import { type ModbusAddress, parseAddress, wireOf } from "./address.ts";
import { FirstRequest } from "./first-request.ts";
import { Hurry } from "./hurry.ts";
import { linkModbus } from "./link.ts";
import { describeRead, limitsOf, type ModbusLimits, type ModbusRead, plan, planSteps } from "./plan.ts";
import { type ModbusSettings, settingsSchema } from "./settings.ts";

// The same limits for the same settings: the agent plans again when they are others.
const limitsOfSettings = new WeakMap<ModbusSettings, ModbusLimits>();
function knownLimits(settings: ModbusSettings): ModbusLimits {
  const known = limitsOfSettings.get(settings) ?? limitsOf(settings);
  limitsOfSettings.set(settings, known);
  return known;
}

const endpoint = ({ host, port }: ModbusTcpDetails) => ({ host, port, transport: "tcp" as const });

export default defineDriver<ModbusTcpDetails, ModbusSettings, ModbusAddress, ModbusRead, ModbusLimits>({
  type: "modbus_tcp",
  title: "Modbus TCP",
  standardPort: 502,
  details: DETAILS.modbus_tcp.read,
  settings: settingsSchema,
  // Many devices take one connection and leave a second one without an answer.
  maxConnections: 1,
  endpoint,
  keepsConnection: ({ ephemeral_connections }) => !ephemeral_connections,
  // Nothing of the settings belongs to the connection: units, orders and sizes are each request's own.
  connectionKey: () => "modbus_tcp",
  limits: (_granted, settings) => knownLimits(settings),
  parseAddress,
  describe: describeRead,
  wireOf,
  answerBytes: ({ functionCode, count }) => (functionCode <= 2 ? Math.ceil(count / 8) : count * 2),
  plan,
  planSteps,
  async connect({ details, settings }, ctx) {
    const connection = await openTcp(endpoint(details), ctx);
    const link = linkModbus(connection, ctx.tap, new FirstRequest(ctx));
    const hurry = new Hurry(ctx);
    const readInTime = async (request: ModbusRead, pauseMs: number, readCtx: DriverContext): Promise<readonly Reading[]> => {
      const waitMs = link.answeredMs() + pauseMs - performance.now();
      if (waitMs > 0) await sleep(waitMs, readCtx.signal);
      const afterMs = performance.now() - link.answeredMs();
      try {
        const readings = await link.read(request, readCtx);
        hurry.answered(request, afterMs);
        return readings;
      } catch (error) {
        hurry.failed(request, afterMs, error);
        throw error;
      }
    };
    return {
      limits: knownLimits(settings),
      read: (request, readCtx) => readInTime(request, Math.max(request.pauseMs, hurry.pauseMs), readCtx),
      alive: () => connection.alive(),
      close: () => connection.close(),
    };
  },
});
