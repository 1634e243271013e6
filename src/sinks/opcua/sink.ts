import { type OpcuaSinkDetails, SINK_DETAILS } from "../../model/sink-details.ts";
import { defineSink } from "../sink.ts";
import { facts } from "./facts.ts";
import { listenPlace } from "./listen.ts";
import { type OpcuaSinkSettings, settingsSchema } from "./settings.ts";

export default defineSink<OpcuaSinkDetails, OpcuaSinkSettings>({
  ...facts,
  settings: settingsSchema,
  placeOf: (_, source, { name }) => `/Objects/1:DataSources/1:${source}/1:${name}`,
  details: SINK_DETAILS.opcua.read,
  endpoint: ({ port }) => `0.0.0.0:${port}`,
  listens: true,
  encryption: ({ security_modes: modes, security_policies: policies }) =>
    modes.every((mode) => mode === "None") ? "none" : `OPC UA ${modes.join(" or ")} (${policies.join(", ")})`,
  maxWaitingBytes: ({ max_waiting: bytes }) => bytes,
  // Every readout as it comes.
  publishIntervalMs: () => 1,
  async open(input, ctx) {
    const { host, notes } = listenPlace(input.settings.listen, input.details.port, ctx);
    // Only who hosts a server pays for the library.
    const { openServer } = await import("./open.ts");
    return await openServer(input, ctx, host, notes);
  },
});
