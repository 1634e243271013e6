export { DamagedPayloadError } from "./bytes.ts";
export { planSteps } from "./codec-format.ts";
export { decodeReadout, wasClockSynced } from "./decode.ts";
export { type EncodedReadout, encodeReadout, encodeSteps } from "./encode.ts";
export { layoutKey, layoutKeySteps } from "./layout-key.ts";
