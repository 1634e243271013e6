import { countOf } from "../../src/base/number.ts";
import { sleep } from "../../src/base/timer.ts";
import { DETAILS, type ModbusTcpDetails } from "../../src/model/details.ts";
import { warning } from "../../src/model/warning.ts";
import { type DriverContext, defineDriver } from "../driver.ts";
import { openTcp } from "../lib/tcp.ts";
import { type ModbusAddress, otherParts, parseAddress, wireOf } from "./address.ts";
import { facts } from "./facts.ts";
import { FirstRequest } from "./first-request.ts";
import { frameWords } from "./frame-words.ts";
import { linkModbus, type ModbusCarrier, tcpCarrier } from "./link.ts";
import { lockStepCarrier } from "./lock-step.ts";
import { describeRead, limitsOf, type ModbusLimits, type ModbusRead, plan, planSteps } from "./plan.ts";
import { type ModbusSettings, settingsSchema } from "./settings.ts";
import { parseType } from "./types.ts";
import { openUdpCarrier } from "./udp-carrier.ts";

// The same limits for the same settings: the agent plans again when they are others.
const limitsOfSettings = new WeakMap<ModbusSettings, ModbusLimits>();
function knownLimits(settings: ModbusSettings): ModbusLimits {
  const known = limitsOfSettings.get(settings) ?? limitsOf(settings);
  limitsOfSettings.set(settings, known);
  return known;
}

const grantedWords = (settings: ModbusSettings): string =>
  `nothing, since the protocol has no set-up; by the settings, reads of ${settings.max_registers} registers or ${settings.max_coils} coils, ${countOf(knownLimits(settings).inFlight, "request")} at once`;

const endpoint = ({ host, port }: ModbusTcpDetails, { transport }: ModbusSettings) => ({ host, port, transport });

async function openCarrier(details: ModbusTcpDetails, settings: ModbusSettings, ctx: DriverContext): Promise<ModbusCarrier> {
  if (settings.transport === "udp") return openUdpCarrier(endpoint(details, settings), settings, ctx);
  const connection = await openTcp(endpoint(details, settings), ctx);
  if (settings.framing !== "tcp") return lockStepCarrier(connection, ctx, settings.framing, settings);
  return tcpCarrier(connection, ctx, new FirstRequest(ctx, settings.repeat_first));
}

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
  // Units, orders and sizes are each request's own.
  connectionKey: (_details, { transport, framing }) => `modbus_tcp ${transport} ${framing}`,
  warningsOf(_details, { transport, framing, in_flight, repeat_first }) {
    const hasNone = (name: string, because: string) => warning("setting_without_effect", `${name} has no effect: ${because}`, name);
    return [
      ...(framing !== "tcp" && in_flight !== undefined && in_flight > 1
        ? [hasNone("in_flight", `with framing ${framing} one request is under way`)]
        : []),
      ...(repeat_first && framing !== "tcp" ? [hasNone("repeat_first", "two answers could not be told apart")] : []),
      ...(repeat_first && framing === "tcp" && transport === "udp" ? [hasNone("repeat_first", "it is for TCP")] : []),
    ];
  },
  limits: (_granted, settings) => knownLimits(settings),
  parseType,
  parseAddress,
  describe: describeRead,
  frameWords,
  wireOf,
  answerBytes: ({ functionCode, count, isWide }) => (functionCode <= 2 ? Math.ceil(count / 8) : count * (isWide === true ? 4 : 2)),
  plan,
  planSteps,
  otherParts,
  habitSettings(habit, value, { max_gap, framing }) {
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
        // Finding out reads registers once more, which those may not take that are cleared by it.
        return framing === "tcp" && max_gap > 0 ? { in_flight: value } : undefined;
    }
  },
  async connect({ details, settings }, ctx) {
    const carrier = await openCarrier(details, settings, ctx);
    const link = linkModbus(carrier, settings.framing);
    return {
      limits: knownLimits(settings),
      granted: grantedWords(settings),
      async read(request, readCtx) {
        const waitMs = link.answeredMs() + request.pauseMs - performance.now();
        if (waitMs > 0) await sleep(waitMs, readCtx.signal);
        return link.read(request, readCtx);
      },
      identify: ({ address }, identifyCtx) => link.identify(address.unit, identifyCtx),
      warnings: () => carrier.warnings(),
      alive: () => carrier.alive(),
      close: () => carrier.close(),
    };
  },
});
