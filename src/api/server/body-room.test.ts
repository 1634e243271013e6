import { connect, type Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { BodyRoom } from "./body-room.ts";
import { MACHINE, startTestServer, type TestServer } from "./testing.ts";

const MIB = 2 ** 20;

test("room is taken and given back, once each", () => {
  const room = new BodyRoom(MIB);
  const first = room.take(MIB - 1);
  expect(room.take(100_000)).toBeUndefined();
  first?.();
  first?.();
  const whole = room.take(MIB);
  expect([whole === undefined, room.take(100_000)]).toEqual([false, undefined]);
  expect(room.take(64 * 1024)).toBeDefined();
});

/** A request whose body lacks its end, and what is answered. */
function beginBody({ server, adminKey }: TestServer, headers: string): { readonly socket: Socket; readonly answer: Promise<string> } {
  const socket = connect(Number(new URL(server.url).port), "127.0.0.1");
  socket.on("error", () => {});
  onTestFinished(() => void socket.destroy());
  socket.write(
    `POST /api/ext/v1/values HTTP/1.1\r\nHost: a\r\nAuthorization: ${adminKey}\r\nContent-Type: application/json\r\n${headers}\r\n\r\n`,
  );
  const answer = new Promise<string>((resolve) => socket.once("data", (data) => resolve(String(data))));
  return { socket, answer };
}

test("bodies that wait for their end take bounded room: further large ones are 503 with Retry-After, small ones pass, and all is well after", async () => {
  const api = await startTestServer();
  const waiting = [
    ...Array.from({ length: 3 }, () => beginBody(api, `Content-Length: ${8 * MIB}`)),
    // How long it becomes is not said.
    beginBody(api, "Transfer-Encoding: chunked"),
  ];
  const large = `{"x":"${"x".repeat(100_000)}"}`;
  const refused = async () => (await api.send("POST", "/ext/v1/values", large)).status;
  await expect.poll(refused).toBe(503);
  expect((await api.send("POST", "/ext/v1/values", large)).headers.get("retry-after")).toBe("1");
  expect(await beginBody(api, `Content-Length: ${8 * MIB}`).answer).toMatch(/^HTTP\/1.1 503 /);
  expect((await api.send("POST", "/ext/v1/values", { id: "a", data_source: MACHINE, values: [] })).status).toBe(422);
  for (const { socket } of waiting) socket.destroy();
  await expect.poll(refused).toBe(422);
});
