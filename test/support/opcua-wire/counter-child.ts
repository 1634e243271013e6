import { WireServer } from "./server.ts";
import { doubleValue, WireSubscriptions } from "./subscriptions.ts";

const STEP_MS = 5;
const COUNTER = "ns=2;s=counter";
const server = new WireServer();
const subscriptions = new WireSubscriptions(server);
subscriptions.publishingMs = 200;
subscriptions.tellsOverflows = true;
const from = Number(process.argv[3]);
server.nodes.set(COUNTER, doubleValue(from));
await server.start(Number(process.argv[2]));
let next = from;
const beganMs = performance.now();
// A timer that is late catches up: each number is there for a moment.
setInterval(() => {
  while (next < from + (performance.now() - beganMs) / STEP_MS) subscriptions.set(COUNTER, ++next);
}, STEP_MS);
process.once("disconnect", () => process.exit(0));
process.send?.({ port: server.port });
