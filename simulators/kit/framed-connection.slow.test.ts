import { once } from "node:events";
import net, { type Socket } from "node:net";
import { afterEach, expect, it } from "vitest";
import { DeviceServer } from "./device-server.ts";
import { FramedConnection } from "./framed-connection.ts";

/** Frames begin with their length; a length of 0 is wrong. Each is answered with itself, one of 8 bytes later, and one of 9 bytes deafens. */
class Echo extends FramedConnection {
  late = 0;

  constructor(socket: Socket) {
    super(socket, ([length]) => (length === undefined ? "more" : length === 0 ? "wrong" : length));
  }

  protected override onFrame(frame: Buffer): void {
    if (frame.length === 9) this.isDeaf = true;
    if (frame.length !== 8) this.write(frame);
    else
      this.after(20, () => {
        this.late++;
        this.write(frame);
      });
  }
}

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

async function connected() {
  const server = new DeviceServer((socket) => new Echo(socket));
  await server.listen({});
  open.push(() => server.close());
  const client = net.connect({ host: "127.0.0.1", port: server.port, noDelay: true });
  open.push(() => client.destroy());
  let received = "";
  client.on("data", (bytes) => {
    received += bytes.toString("hex");
  });
  await once(client, "connect");
  const until = async (hex: string): Promise<void> => {
    while (received !== hex) await once(client, "data");
  };
  return { server, client, until, received: () => received };
}

it("cuts frames out of whatever parts arrive, and answers later where it is to", async () => {
  const { client, until } = await connected();
  client.write(Buffer.from("0301", "hex"));
  client.write(Buffer.from("02020708", "hex"));
  await until("0301020207");
  client.write(Buffer.alloc(7));
  await until(`030102020708${"00".repeat(7)}`);
});

it("resets a connection over what does not begin with a frame", async () => {
  const { client, server } = await connected();
  client.write(Buffer.of(0));
  const [error] = await once(client, "error");
  expect(error).toMatchObject({ code: "ECONNRESET" });
  await once(client, "close");
  expect(server.connections.size).toBe(0);
});

it("answers nothing once it is deaf, and ends when the server drops it", async () => {
  const { client, server, received } = await connected();
  client.write(Buffer.concat([Buffer.of(8), Buffer.alloc(7), Buffer.of(9), Buffer.alloc(8), Buffer.of(2, 2)]));
  await new Promise((done) => setTimeout(done, 60));
  expect([...server.connections].map(({ late }) => late)).toEqual([0]);
  server.drop("fin");
  await once(client, "end");
  expect(received()).toBe("");
});
