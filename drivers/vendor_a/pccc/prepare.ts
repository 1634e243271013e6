import { FaultError } from "../../../src/model/fault.ts";
import type { Point, Prepared } from "../../driver.ts";
import { type FileAddress, fileText } from "./address.ts";
import type { FileFamily } from "./files.ts";
import { placeOf } from "./place.ts";

/** Addresses that are placed between two looks at the rest of the program. */
const AT_ONCE = 250;

/** The places of addresses in the files of this family; no controller says which elements there are. */
export async function* placeFiles(points: readonly Point<FileAddress>[], family: FileFamily): AsyncGenerator<Prepared<FileAddress>[]> {
  for (let at = 0; at < points.length; at += AT_ONCE) yield points.slice(at, at + AT_ONCE).map((point) => placed(point, family));
}

function placed(point: Point<FileAddress>, family: FileFamily): Prepared<FileAddress> {
  try {
    return { point, address: { ...point.address, place: placeOf(point.address, family) }, type: point.type };
  } catch (error) {
    if (error instanceof FaultError) return { point, refusal: error };
    throw error;
  }
}

/** A Micro800 has none. */
export function* noFiles(points: readonly Point<FileAddress>[]): Generator<Prepared<FileAddress>[]> {
  const refusal = (point: Point<FileAddress>) =>
    new FaultError("not_found", `${fileText(point.address)}: a Micro800 has no data files; read the variable by its name`);
  yield points.map((point) => ({ point, refusal: refusal(point) }));
}
