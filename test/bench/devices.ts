import net, { type AddressInfo } from "node:net";

/**
 * Modbus devices for benches: holding registers only, each with a counter that changes ten times a second.
 * A process of its own, so that its CPU is not the collector's. Arguments: devices, registers, ms before each answer, how many of the registers
 * change (all of them where it is absent). Prints its ports as JSON, then for each question on its standard input
 * when (ms since 1970) a device was asked first and when each had given all of its registers, since the last `0`; null: not yet.
 */
const [devices = 1, registers = 125, delayMs = 0, changing = registers] = process.argv.slice(2).map(Number);

const memory = Buffer.alloc(registers * 2);
setInterval(() => {
  for (let i = 0; i < changing; i++) memory.writeUInt16BE((memory.readUInt16BE(i * 2) + 1 + i) & 0xffff, i * 2);
}, 100);

let firstAt: number | null = null;
let allAt: number | null = null;
const given = new Array<number>(devices).fill(0);
let unread = devices;
function count(device: number, registersGiven: number): void {
  firstAt ??= Date.now();
  const before = given[device] ?? 0;
  given[device] = before + registersGiven;
  if (before < registers && before + registersGiven >= registers && --unread === 0) allAt = Date.now();
}
process.stdin.on("data", (asked: Buffer) => {
  console.log(JSON.stringify({ firstAt, allAt }));
  if (asked.toString() !== "0") return;
  given.fill(0);
  [firstAt, allAt, unread] = [null, null, devices];
});

const ports = await Promise.all(
  Array.from({ length: devices }, async (_, device) => {
    const server = net.createServer({ noDelay: true }, (socket) => {
      let rest: Buffer = Buffer.alloc(0);
      socket.on("error", () => {});
      socket.on("data", (chunk) => {
        rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
        for (; rest.length >= 12; rest = rest.subarray(12)) {
          const [start, asked] = [rest.readUInt16BE(8), rest.readUInt16BE(10)];
          const known = rest[7] === 3 && start + asked <= registers;
          const reply = Buffer.alloc(known ? 9 + asked * 2 : 9);
          rest.copy(reply, 0, 0, 8);
          reply.writeUInt16BE(reply.length - 6, 4);
          if (known) {
            count(device, asked);
            reply[8] = asked * 2;
            memory.copy(reply, 9, start * 2, (start + asked) * 2);
          } else {
            reply[7] = (rest[7] ?? 0) | 0x80;
            reply[8] = 2;
          }
          if (delayMs === 0) socket.write(reply);
          else setTimeout(() => socket.write(reply), delayMs);
        }
      });
    });
    await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
    return (server.address() as AddressInfo).port;
  }),
);
console.log(JSON.stringify(ports));
