export { DamagedPayloadError } from "./bytes.ts";
export { decodeReadout, wasClockSynced } from "./decode.ts";
export { type EncodedReadout, encodeReadout } from "./encode.ts";
export { layoutKey } from "./layout-key.ts";
