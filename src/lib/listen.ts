import { once } from "node:events";
import type { ListenOptions, Server } from "node:net";
import { errorCode } from "../model/failure.ts";
import { portHolder } from "./port-holder.ts";

/** Rejects with Node's error where a server cannot listen there, and with words where another has the port. */
export async function listenAt(server: Server, place: ListenOptions): Promise<void> {
  await once(server.listen(place), "listening").catch((error: unknown) => {
    const holder = place.port !== undefined && errorCode(error) === "EADDRINUSE" ? portHolder(place.port) : undefined;
    throw holder === undefined ? error : new Error(`EADDRINUSE: the port is in use by ${holder}`, { cause: error });
  });
}
