export { type PackIndex, type PayloadOf, readBody, readHead, wasRowSynced } from "./pack-decode.ts";
export { PackBuilder, type Packed, PackScratch } from "./pack-encode.ts";
export { type Fields, fieldsOf } from "./pack-shape.ts";
