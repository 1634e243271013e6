import net, { type AddressInfo } from "node:net";
import { Aedes } from "aedes";

/**
 * An MQTT broker for benches, in a process of its own. Counts the values of the messages it takes, by the lengths that a look without
 * parsing gives. Argument: its port; absent: a free one. Prints its port as JSON, then for each `?` on its standard input the count of
 * values, and for each `l` how many ms the latest live readout was late since the last `l`.
 */
const aedes = await Aedes.createBroker();
let values = 0;
let lateMs = 0;
aedes.on("publish", ({ topic, payload }) => {
  if (topic.startsWith("$") || /\/(status|meta|gap)(\/|$)/.test(topic)) return;
  const { readouts, backlog = false } = JSON.parse(payload.toString()) as {
    readonly readouts: readonly { readonly ts: string; readonly values: object }[];
    readonly backlog?: boolean;
  };
  for (const { values: taken } of readouts) values += Object.keys(taken).length;
  if (!backlog) lateMs = Math.max(lateMs, Date.now() - Date.parse(readouts[0]?.ts ?? ""));
});
const server = net.createServer(aedes.handle);
server.listen(Number(process.argv[2] ?? 0), "127.0.0.1", () =>
  console.log(JSON.stringify({ port: (server.address() as AddressInfo).port })),
);
process.stdin.on("data", (asked: Buffer) => {
  if (asked.toString() !== "l") {
    console.log(String(values));
    return;
  }
  console.log(String(lateMs));
  lateMs = 0;
});
