import net from "node:net";
import type { Simulator } from "../../../drivers/simulator.ts";

const VALUES = new Map([
  ["flow", 12.5],
  ["temp", -3.75],
  ["pressure_1", 0.1],
  ["pressure_2", 1e21],
  ["level", 0],
]);

// cut: simulator
/** A gauge on a real socket. It shares no line with the driver: the same mistake on both sides would not show. */
export async function startSimulator({ port = 0, host = "127.0.0.1" } = {}): Promise<Simulator> {
  const sockets = new Set<net.Socket>();
  const server = net.createServer((socket) => {
    sockets.add(socket);
    let held = "";
    socket.on("data", (bytes) => {
      const lines = (held + bytes.toString("latin1")).split("\n");
      held = lines.pop() ?? "";
      for (const line of lines) {
        const [id, verb, ...names] = line.split(" ");
        if (verb === "GET") socket.write(`${id} ${names.map((name) => VALUES.get(name) ?? "?").join(" ")}\n`);
        else socket.destroy();
      }
    });
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
  });
  await new Promise<void>((listening) => server.listen(port, host, listening));
  return {
    port: (server.address() as net.AddressInfo).port,
    details: (host, port) => ({ type: "gauge", host, port }),
    variables: [...VALUES].map(([address, value]) => ({ address, type: "float64", value })),
    missing: { address: "speed", type: "float64" },
    malformed: ["", "Flow", "flow rate", "1flow", "flow\n", "a_name_that_is_too_long"],
    connections: () => sockets.size,
    async close() {
      const closed = new Promise((done) => server.close(done));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
// cut: end
