import type { VendorGatewayDetails } from "../../src/model/details.ts";

/** What of the machine behind the gateway is read, in the words of the API. */
export type ProtocolDetails = Exclude<VendorGatewayDetails["protocol_details"], { readonly protocol: "OTHER" }>;

/** `the OPC DA server Plant.OpcDa.1`. */
export const targetWords = (target: ProtocolDetails): string =>
  target.protocol === "OPC_DA" ? `the OPC DA server ${target.server_name}` : `the PVI path ${target.path}`;
