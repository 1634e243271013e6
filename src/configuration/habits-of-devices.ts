import path from "node:path";
import * as z from "zod";
import type { Log } from "../model/context.ts";
import { KeptValues } from "./kept-values.ts";

/** How devices want to be asked, by transport, host and port, in a file of the state folder. */
export const habitsOfDevices = (stateDir: string, log: Log): KeptValues =>
  new KeptValues(
    {
      path: path.join(stateDir, "habits-of-devices.json"),
      field: "devices",
      owner: z.string().max(300),
      title: "what is known of how devices want to be asked",
      unreadable: "what was learned of how devices want to be asked cannot be read: it is learned again, which takes some readouts",
    },
    log,
  );
