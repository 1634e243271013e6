import net, { type AddressInfo } from "node:net";

/** A gateway that says what a test tells it to. */
export interface ScriptedGateway {
  readonly port: number;
  /** What clients have sent, without the ends of lines. */
  readonly lines: readonly string[];
  close(): Promise<void>;
}

/** Of a request: the line that answers it, or the bytes; undefined: nothing is sent. `nth` counts all lines from 0. */
export type Script = (
  line: { readonly id: number; readonly request: string; readonly items?: readonly string[] },
  nth: number,
  socket: net.Socket,
) => string | Buffer | undefined;

export async function scriptedGateway(script: Script): Promise<ScriptedGateway> {
  const lines: string[] = [];
  const sockets = new Set<net.Socket>();
  const server = net.createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    let held = "";
    socket.setEncoding("utf8").on("data", (text: string) => {
      const parts = (held + text).split("\n");
      held = parts.pop() ?? "";
      for (const line of parts) {
        const answer = script(JSON.parse(line), lines.push(line) - 1, socket);
        if (answer !== undefined) socket.write(typeof answer === "string" ? `${answer}\n` : answer);
      }
    });
  });
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  return {
    port: (server.address() as AddressInfo).port,
    lines,
    async close() {
      const closed = new Promise((done) => server.close(done));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

/** The answer to hello and open that most tests begin with; undefined: it is another request. */
export function greeting({ id, request }: { readonly id: number; readonly request: string }, limits: object = {}): string | undefined {
  if (request === "hello")
    return JSON.stringify({
      id,
      answer: {
        version: 1,
        gateway: "scripted",
        protocols: ["OPC_DA"],
        capabilities: ["browse"],
        limits: { max_line_bytes: 1_048_576, max_items: 1000, max_in_flight: 4, ...limits },
      },
    });
  return request === "open" ? JSON.stringify({ id, answer: { server: "scripted", epoch: "1" } }) : undefined;
}
