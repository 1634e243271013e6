import { countOf } from "../../src/base/number.ts";
import { sleep } from "../../src/base/timer.ts";
import { DETAILS, type ModbusTcpDetails } from "../../src/model/details.ts";
import { defineDriver } from "../driver.ts";
import { openTcp } from "../lib/tcp.ts";
import { type ModbusAddress, otherParts, parseAddress, wireOf } from "./address.ts";
import { facts } from "./facts.ts";
import { FirstRequest } from "./first-request.ts";
import { frameWords } from "./frame-words.ts";
import { linkModbus } from "./link.ts";
import { describeRead, IN_FLIGHT, limitsOf, type ModbusLimits, type ModbusRead, plan, planSteps } from "./plan.ts";
import { type ModbusSettings, settingsSchema } from "./settings.ts";
import { parseType } from "./types.ts";

// The same limits for the same settings: the agent plans again when they are others.
const limitsOfSettings = new WeakMap<ModbusSettings, ModbusLimits>();
function knownLimits(settings: ModbusSettings): ModbusLimits {
  const known = limitsOfSettings.get(settings) ?? limitsOf(settings);
  limitsOfSettings.set(settings, known);
  return known;
}

const grantedWords = ({ max_registers, max_coils, in_flight = IN_FLIGHT }: ModbusSettings): string =>
  `nothing, since the protocol has no set-up; by the settings, reads of ${max_registers} registers or ${max_coils} coils, ${countOf(in_flight, "request")} at once`;

const endpoint = ({ host, port }: ModbusTcpDetails) => ({ host, port, transport: "tcp" as const });

export default defineDriver<ModbusTcpDetails, ModbusSettings, ModbusAddress, ModbusRead, ModbusLimits>({
  type: facts.type,
  title: facts.title,
  standardPort: facts.standardPort,
  details: DETAILS.modbus_tcp.read,
  settings: settingsSchema,
  // Many devices take one connection and leave a second one without an answer.
  maxConnections: 1,
  endpoint,
  keepsConnection: ({ ephemeral_connections }) => !ephemeral_connections,
  // Nothing of the settings belongs to the connection: units, orders and sizes are each request's own.
  connectionKey: () => "modbus_tcp",
  limits: (_granted, settings) => knownLimits(settings),
  parseType,
  parseAddress,
  describe: describeRead,
  frameWords,
  wireOf,
  answerBytes: ({ functionCode, count }) => (functionCode <= 2 ? Math.ceil(count / 8) : count * 2),
  plan,
  planSteps,
  otherParts,
  habitSettings(habit, value) {
    switch (habit) {
      case "deaf_at_first":
        return { repeat_first: true };
      case "pause":
        return { min_pause: value };
      case "no_gaps":
        return { max_gap: 0, max_gap_coils: 0 };
      case "small_blocks":
        return { max_registers: Math.max(1, Math.floor(value / 2)), max_coils: Math.max(1, value * 8) };
      case "one_in_flight":
        return { in_flight: 1 };
      case "several_in_flight":
        return { in_flight: value };
    }
  },
  async connect({ details, settings }, ctx) {
    const connection = await openTcp(endpoint(details), ctx);
    const link = linkModbus(connection, ctx, new FirstRequest(ctx, settings.repeat_first));
    return {
      limits: knownLimits(settings),
      granted: grantedWords(settings),
      async read(request, readCtx) {
        const waitMs = link.answeredMs() + request.pauseMs - performance.now();
        if (waitMs > 0) await sleep(waitMs, readCtx.signal);
        return link.read(request, readCtx);
      },
      alive: () => connection.alive(),
      close: () => connection.close(),
    };
  },
});
