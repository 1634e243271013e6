import net, { type AddressInfo } from "node:net";
import { Aedes } from "aedes";

/**
 * An MQTT broker for benches, in a process of its own. Counts the values of the messages it takes, by the lengths that a look without
 * parsing gives. Prints its port as JSON, then the count of values for each byte on its standard input.
 */
const aedes = await Aedes.createBroker();
let values = 0;
aedes.on("publish", ({ topic, payload }) => {
  if (topic.startsWith("$") || /\/(status|meta)(\/|$)/.test(topic)) return;
  for (const { values: taken } of (JSON.parse(payload.toString()) as { readouts: { values: object }[] }).readouts)
    values += Object.keys(taken).length;
});
const server = net.createServer(aedes.handle);
server.listen(0, "127.0.0.1", () => console.log(JSON.stringify({ port: (server.address() as AddressInfo).port })));
process.stdin.on("data", () => console.log(String(values)));
