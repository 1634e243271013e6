import { startBroker } from "../support/broker.ts";
import { type Listening, TAKE } from "./broker.ts";

// Nobody asks it what it has received: the demo's subscriber is an ordinary client.
const broker = await startBroker({ port: Number(process.argv[2]), onPublish: () => {}, handsOnFirst: true });
broker.hold(true);
process.on("message", (told) => {
  if (told === TAKE) broker.hold(false);
});
process.once("disconnect", () => process.exit(0));
process.send?.({ port: broker.port } satisfies Listening);
