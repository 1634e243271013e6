export { type PackIndex, type PayloadOf, readBody, readHead, wasRowSynced } from "./pack-decode.ts";
export { PackBuilder, type Packed } from "./pack-encode.ts";
