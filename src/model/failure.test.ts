import { lookup } from "node:dns/promises";
import { connect, createServer, type Socket } from "node:net";
import { getSystemErrorMap } from "node:util";
import fc from "fast-check";
import { afterEach, describe, expect, test } from "vitest";
import { messageOf, toFailure, toReasonError } from "./failure.ts";
import { FAULTS, FaultError } from "./fault.ts";
import { type PlainReasonType, ReasonError } from "./reason.ts";

/** An error as Node makes it of the kernel's: the number belongs to the code on this platform. */
function systemError(code: string, syscall = "connect"): Error {
  const errno = [...getSystemErrorMap()].find(([, [name]]) => name === code)?.[0] ?? -9999;
  return Object.assign(new Error(`${syscall} ${code} 127.0.0.1:1`), { code, syscall, errno });
}

const asReason = (error: unknown): ReasonError => {
  const failure = toFailure(error);
  if (!(failure instanceof ReasonError)) throw new Error(`expected a ReasonError, got the fault ${failure.fault}`);
  return failure;
};

const open = new Set<{ destroy(): void } | { close(): void }>();
afterEach(() => {
  for (const it of open) "destroy" in it ? it.destroy() : it.close();
  open.clear();
});

/** A listening server and a way to what connects to it. */
async function listen(onConnection: (socket: Socket) => void = () => {}): Promise<number> {
  const server = createServer((socket) => {
    open.add(socket);
    socket.on("error", () => {});
    onConnection(socket);
  });
  open.add(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  return address.port;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  return address.port;
}

const failureOf = (socket: Socket): Promise<Error> => new Promise((resolve) => socket.once("error", resolve));

describe("the kernel's errors", () => {
  const TABLE: readonly (readonly [code: string, reason: PlainReasonType])[] = [
    ["EHOSTUNREACH", "NO_ROUTE_TO_HOST"],
    ["EHOSTDOWN", "HOST_DOWN"],
    ["ENONET", "HOST_DOWN"],
    ["ENETUNREACH", "NETWORK_UNREACHABLE"],
    ["ENETDOWN", "NETWORK_UNREACHABLE"],
    ["ECONNREFUSED", "CONNECTION_REFUSED"],
    ["ECONNRESET", "CONNECTION_RESET"],
    ["ECONNABORTED", "CONNECTION_RESET"],
    ["EPIPE", "CONNECTION_CLOSED"],
    ["ETIMEDOUT", "TIMEOUT"],
  ];
  test.each(TABLE)("%s is %s", (code, reason) => {
    const error = systemError(code);
    const failure = asReason(error);
    expect(failure.reason).toEqual({ type: reason });
    expect(failure.condition).toBeUndefined();
    expect(failure.message).toBe(error.message);
    expect(failure.cause).toBe(error);
  });

  test.each(["EMFILE", "EADDRNOTAVAIL", "ENOBUFS", "EACCES", "EPERM", "EINVAL"])("%s is trouble of the collector's own host", (code) => {
    const failure = asReason(systemError(code));
    expect(failure.reason).toEqual({ type: "UNKNOWN" });
    expect(failure.condition).toBe("collector_host_trouble");
  });

  test.each(["getaddrinfo", "queryA", "queryAaaa", "querySrv"])("every code from %s is LOOKUP_ERROR", (syscall) => {
    for (const code of ["ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ETIMEDOUT", "EMFILE"])
      expect(asReason(systemError(code, syscall)).reason).toEqual({ type: "LOOKUP_ERROR" });
  });

  test.each(["ERR_STREAM_WRITE_AFTER_END", "ERR_STREAM_DESTROYED", "ERR_SOCKET_CLOSED", "ERR_STREAM_PREMATURE_CLOSE"])(
    "%s is CONNECTION_CLOSED",
    (code) => {
      expect(asReason(Object.assign(new Error("closed"), { code })).reason).toEqual({ type: "CONNECTION_CLOSED" });
    },
  );

  test("a made-up errno is not the kernel's", () => {
    for (const made of [{ code: "ECONNREFUSED", errno: "ECONNREFUSED" }, { code: "ECONNREFUSED" }, { code: 111, errno: -111 }]) {
      const failure = asReason(Object.assign(new Error("Port Not Open"), made));
      expect(failure.reason).toEqual({ type: "UNKNOWN" });
      expect(failure.condition).toBe("internal_error");
    }
  });
});

describe("real errors", () => {
  test("a closed port is CONNECTION_REFUSED", async () => {
    const socket = connect(await freePort(), "127.0.0.1");
    open.add(socket);
    expect(asReason(await failureOf(socket)).reason).toEqual({ type: "CONNECTION_REFUSED" });
  });

  test("a closed port behind a name with several addresses is CONNECTION_REFUSED", async () => {
    const socket = connect({
      port: await freePort(),
      host: "two.addresses.invalid",
      autoSelectFamily: true,
      lookup: (_host, _options, answer) =>
        answer(null, [
          { address: "127.0.0.1", family: 4 },
          { address: "127.0.0.2", family: 4 },
        ]),
    });
    open.add(socket);
    const error = await failureOf(socket);
    expect(error).toBeInstanceOf(AggregateError);
    expect(asReason(error).reason).toEqual({ type: "CONNECTION_REFUSED" });
  });

  // A resolver without a network takes its own time to give up.
  test("a name that does not exist is LOOKUP_ERROR", { timeout: 60_000 }, async () => {
    const error: unknown = await lookup("nx.invalid").catch((thrown: unknown) => thrown);
    expect(asReason(error).reason).toEqual({ type: "LOOKUP_ERROR" });
  });

  test("a RST is CONNECTION_RESET", async () => {
    const socket = connect(await listen((peer) => peer.once("data", () => peer.resetAndDestroy())), "127.0.0.1", () => socket.write("?"));
    open.add(socket);
    expect(asReason(await failureOf(socket)).reason).toEqual({ type: "CONNECTION_RESET" });
  });

  test("a write after the end is CONNECTION_CLOSED", async () => {
    const socket = connect(await listen(), "127.0.0.1");
    open.add(socket);
    await new Promise<void>((resolve) => socket.end(resolve));
    const error = await new Promise<unknown>((resolve) => socket.on("error", () => {}).write("?", resolve));
    expect(asReason(error).reason).toEqual({ type: "CONNECTION_CLOSED" });
  });

  test("an address that is not this machine's is trouble of the collector's own host", async () => {
    const socket = connect({ port: 1, host: "127.0.0.1", localAddress: "192.0.2.1" });
    open.add(socket);
    const failure = asReason(await failureOf(socket));
    expect(failure.reason).toEqual({ type: "UNKNOWN" });
    expect(failure.condition).toBe("collector_host_trouble");
  });
});

describe("what is wrapped", () => {
  test("a known failure passes unchanged, also as the cause of another error", () => {
    const reason = new ReasonError({ type: "S7PLUS_ERROR", category: "AUTHENTICATION" }, "level 4");
    const fault = new FaultError("not_found", "no such variable");
    for (const known of [reason, fault]) {
      expect(toFailure(known)).toBe(known);
      expect(toFailure(new Error("outer", { cause: new Error("middle", { cause: known }) }))).toBe(known);
      expect(toFailure(new AggregateError([new Error("nothing known"), known]))).toBe(known);
    }
  });

  test("the outermost known error wins", () => {
    const error = Object.assign(systemError("ECONNRESET"), { cause: systemError("ETIMEDOUT") });
    expect(asReason(error).reason).toEqual({ type: "CONNECTION_RESET" });
  });

  test("the first known member of an AggregateError wins, before its cause", () => {
    const error = new AggregateError([new Error("?"), systemError("EHOSTUNREACH"), systemError("ETIMEDOUT")], "all failed", {
      cause: systemError("EPIPE"),
    });
    expect(asReason(error).reason).toEqual({ type: "NO_ROUTE_TO_HOST" });
    expect(asReason(new AggregateError([], "none", { cause: systemError("EPIPE") })).reason).toEqual({ type: "CONNECTION_CLOSED" });
  });

  test("a circle of causes ends", () => {
    const a = new Error("a");
    const b = new AggregateError([a], "b", { cause: a });
    a.cause = b;
    expect(asReason(a).condition).toBe("internal_error");
    expect(asReason(new Error("outer", { cause: b })).condition).toBe("internal_error");
  });
});

test("where a fault is no answer it becomes UNKNOWN, and a reason stays", () => {
  for (const fault of FAULTS) {
    const failure = toReasonError(new FaultError(fault, "exception 2"));
    expect(failure.reason).toEqual({ type: "UNKNOWN" });
    expect(failure.condition).toBe("protocol_violation");
    expect(failure.message).toBe("exception 2");
  }
  expect(toReasonError(systemError("EPIPE")).reason).toEqual({ type: "CONNECTION_CLOSED" });
});

describe("total", () => {
  const hostile: readonly (readonly [string, unknown])[] = [
    ["an object without a prototype", Object.create(null)],
    ["an object whose toString throws", { toString: () => raise() }],
    ["a symbol", Symbol("s")],
    ["an error whose message throws", Object.defineProperty(new Error("x"), "message", { get: raise })],
    ["an error whose message is no text", Object.defineProperty(new Error("x"), "message", { value: { a: 1 } })],
    ["an error whose code throws", Object.defineProperty(new Error("x"), "code", { get: raise })],
    ["an error whose cause throws", Object.defineProperty(new Error("x"), "cause", { get: raise })],
    ["an error whose errno throws", Object.defineProperties(new Error("x"), { code: { value: "EPIPE" }, errno: { get: raise } })],
    ["an AggregateError without a list", Object.defineProperty(new AggregateError([]), "errors", { value: 7 })],
    ["a proxy that throws at every touch", new Proxy(new Error("x"), { get: raise, has: raise, getPrototypeOf: raise })],
    ["a revoked proxy", revoked()],
    ["a long chain of causes", chain(100_000)],
  ];
  test.each(hostile)("%s becomes UNKNOWN", (_name, thrown) => {
    const failure = asReason(thrown);
    expect(failure.reason).toEqual({ type: "UNKNOWN" });
    expect(typeof failure.message).toBe("string");
    expect(typeof messageOf(thrown)).toBe("string");
  });

  test("a refused certificate comes without Node's advice for who starts the program", () => {
    const words = "unable to verify the first certificate";
    const error = new Error(`${words}; if the root CA is installed locally, try running Node.js with  --use-system-ca`);
    expect(messageOf(error)).toBe(words);
  });

  test("whatever is thrown becomes a failure with a message", () => {
    const thrown = fc.oneof(
      fc.anything({ withNullPrototype: true, withBigInt: true, withDate: true, withMap: true, withSet: true, withTypedArray: true }),
      fc
        .record({ message: fc.string(), code: fc.anything(), errno: fc.anything(), syscall: fc.anything(), cause: fc.anything() })
        .map(({ message, ...rest }) => Object.assign(new Error(message), rest)),
      fc.array(fc.anything()).map((errors) => new AggregateError(errors)),
    );
    fc.assert(
      fc.property(thrown, (value) => {
        for (const failure of [toFailure(value), toReasonError(value)]) {
          expect(failure instanceof ReasonError || failure instanceof FaultError).toBe(true);
          expect(typeof failure.message).toBe("string");
        }
      }),
    );
  });
});

function raise(): never {
  throw new Error("raised by the thrown value");
}

function revoked(): unknown {
  const { proxy, revoke } = Proxy.revocable(new Error("x"), {});
  revoke();
  return proxy;
}

function chain(length: number): Error {
  let error = new Error("innermost");
  for (let i = 0; i < length; i++) error = new Error("outer", { cause: error });
  return error;
}
