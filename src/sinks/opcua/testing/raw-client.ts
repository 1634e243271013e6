import net from "node:net";

/**
 * A client written from OPC 10000-6 alone, on a channel without security: it sends whatever a test wants, also what no library would, and
 * reads only when it is asked to.
 */
export interface RawClient {
  readonly socket: net.Socket;
  /** What came, chunk by chunk, until it is `forgetting`. */
  readonly chunks: readonly Buffer[];
  /** Messages that are complete, kept or not. */
  readonly messages: number;
  /** Of the service result in the header of those that it forgot: 0 is Good. */
  readonly results: ReadonlySet<number>;
  /** Bytes that came. */
  readonly received: number;
  readonly isClosed: boolean;
  /** Sends HEL and OpenSecureChannel; rejects where either is not answered. */
  open(): Promise<void>;
  /** CreateSession and, anonymously, ActivateSession. */
  login(): Promise<void>;
  /** Sends a request, in chunks of at most `chunkBytes` of body; answers its request id. */
  send(type: number, body: Buffer, options?: SendOptions): number;
  /** The same as bytes, unsent. */
  encode(type: number, body: Buffer, options?: SendOptions): Buffer;
  /** The answer to a request, without its header: the identifier of its type, the service result and what follows the response header. */
  answer(requestId: number): Promise<RawAnswer>;
  /** Takes nothing from the socket any more; the kernel's buffers fill. */
  stopReading(): void;
  resumeReading(): void;
  /** From here on what comes is only counted. */
  forget(): void;
  end(): void;
}

export interface SendOptions {
  readonly chunkBytes?: number;
  readonly messageType?: string;
}

export interface RawAnswer {
  readonly type: number;
  readonly result: number;
  readonly rest: Buffer;
}

export const TYPE = {
  findServers: 422,
  getEndpoints: 428,
  openSecureChannel: 446,
  createSession: 461,
  activateSession: 467,
  closeSession: 473,
  read: 631,
  browse: 527,
  createMonitoredItems: 751,
  createSubscription: 787,
  publish: 826,
  write: 673,
  serviceFault: 397,
} as const;

export const u32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value >>> 0);
  return bytes;
};
export const double = (value: number): Buffer => {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleLE(value);
  return bytes;
};
export const text = (words: string | null): Buffer =>
  words === null ? u32(0xffff_ffff) : Buffer.concat([u32(Buffer.byteLength(words)), Buffer.from(words)]);
const nodeIdOf = (type: number): Buffer => Buffer.from([1, 0, type & 0xff, type >> 8]);
const stringNode = (namespace: number, id: string): Buffer => Buffer.concat([Buffer.from([3, namespace, 0]), text(id)]);

/** Body of a Read of the values of these variables of namespace 1, each time all of them (OPC 10000-4, 5.11.2). */
export function readBody(ids: readonly string[]): Buffer {
  const nodes = ids.map((id) => Buffer.concat([stringNode(1, id), u32(13), text(null), Buffer.from([0, 0]), text(null)]));
  return Buffer.concat([double(0), u32(2), u32(nodes.length), ...nodes]);
}

/** Body of a Write of as many values, each a status that no table has (OPC 10000-4, 5.11.4): the library prints a line for each. */
export function writeBody(count: number): Buffer {
  const value = Buffer.concat([Buffer.from([0, 0]), u32(13), text(null), Buffer.from([2]), u32(0x80ff_beef)]);
  return Buffer.concat([u32(count), ...Array.from({ length: count }, () => value)]);
}

/** Body of a GetEndpoints (OPC 10000-4, 5.5.4). */
export const getEndpointsBody = (url: string): Buffer => Buffer.concat([text(url), u32(0), u32(0)]);

/** Body of a CreateSubscription that publishes every 50 ms (OPC 10000-4, 5.14.2). */
export const subscriptionBody = (): Buffer => Buffer.concat([double(50), u32(10_000), u32(100), u32(0), Buffer.from([1, 0])]);

/** Body of a CreateMonitoredItems for these variables of namespace 1 (OPC 10000-4, 5.13.2). */
export function itemsBody(subscription: number, ids: readonly string[]): Buffer {
  const items = ids.map((id, i) =>
    Buffer.concat([
      ...[stringNode(1, id), u32(13), text(null), Buffer.from([0, 0]), text(null)],
      ...[u32(2), u32(i), double(0), Buffer.from([0, 0, 0]), u32(10), Buffer.from([1])],
    ]),
  );
  return Buffer.concat([u32(subscription), u32(2), u32(items.length), ...items]);
}

const TIMEOUT_MS = 20_000;
/** The place where the body of a MSG chunk begins. */
const BODY_AT = 24;

export async function rawClient(port: number, host = "127.0.0.1"): Promise<RawClient> {
  const socket = net.connect({ port, host });
  const chunks: Buffer[] = [];
  let pending: Buffer = Buffer.alloc(0);
  let received = 0;
  let isClosed = false;
  let isReading = true;
  let isForgetting = false;
  let messages = 0;
  let wasFinal = true;
  const results = new Set<number>();
  let channel = 0;
  let token = 0;
  let sequence = 0;
  let requests = 0;
  let authentication: Buffer = Buffer.from([0, 0]);
  const waiting = new Set<() => void>();
  const wake = (): void => {
    for (const look of [...waiting]) look();
  };
  socket.on("error", () => {});
  socket.on("close", () => {
    isClosed = true;
    wake();
  });
  socket.on("data", (data: Buffer) => {
    received += data.length;
    pending = Buffer.concat([pending, data]);
    while (pending.length >= 8 && pending.length >= pending.readUInt32LE(4)) {
      const length = pending.readUInt32LE(4);
      const chunk = pending.subarray(0, length);
      const isFirst = wasFinal;
      wasFinal = chunk[3] === 0x46;
      if (wasFinal) messages++;
      if (!isForgetting) chunks.push(chunk);
      else if (isFirst && chunk.length >= BODY_AT + 20) results.add(chunk.readUInt32LE(BODY_AT + 16));
      pending = pending.subarray(length);
    }
    wake();
  });
  await new Promise<void>((done, reject) => {
    socket.once("connect", done);
    socket.once("error", reject);
  });

  const until = <T>(look: () => T | undefined, what: string): Promise<T> =>
    new Promise((done, reject) => {
      const timer = setTimeout(() => settle(new Error(`no ${what} within ${TIMEOUT_MS} ms`)), TIMEOUT_MS);
      const settle = (outcome: Error | { readonly found: T }): void => {
        clearTimeout(timer);
        waiting.delete(check);
        if (outcome instanceof Error) reject(outcome);
        else done(outcome.found);
      };
      const check = (): void => {
        const found = look();
        if (found !== undefined) settle({ found });
        else if (isClosed)
          settle(new Error(`the connection was closed before ${what}; the last chunk: ${chunks.at(-1)?.toString("latin1")}`));
      };
      waiting.add(check);
      check();
    });
  const chunkOf = (type: string, after = 0): Promise<Buffer> =>
    until(() => chunks.slice(after).find((chunk) => chunk.toString("latin1", 0, 3) === type), type);

  const header = (requestId: number): Buffer =>
    Buffer.concat([authentication, Buffer.alloc(8), u32(requestId), u32(0), text(null), u32(60_000), Buffer.from([0, 0, 0])]);
  const frame = (type: string, ...parts: readonly Buffer[]): Buffer => {
    const body = Buffer.concat(parts);
    return Buffer.concat([Buffer.from(type), u32(body.length + 8), body]);
  };

  const encode = (type: number, body: Buffer, { chunkBytes = 60_000, messageType = "MSG" }: SendOptions = {}): Buffer => {
    const requestId = ++requests;
    const message = Buffer.concat([nodeIdOf(type), header(requestId), body]);
    const parts: Buffer[] = [];
    for (let at = 0; at < message.length; at += chunkBytes) {
      const isLast = at + chunkBytes >= message.length;
      const part = message.subarray(at, at + chunkBytes);
      parts.push(frame(`${messageType}${isLast ? "F" : "C"}`, u32(channel), u32(token), u32(++sequence), u32(requestId), part));
    }
    return Buffer.concat(parts);
  };

  const answer = async (requestId: number): Promise<RawAnswer> => {
    const own = (): Buffer[] => chunks.filter((chunk) => chunk.toString("latin1", 0, 3) === "MSG" && chunk.readUInt32LE(20) === requestId);
    await until(() => (own().some((chunk) => chunk[3] === 0x46) ? true : undefined), `answer to request ${requestId}`);
    const message = Buffer.concat(own().map((chunk) => chunk.subarray(24)));
    // 4 bytes of type, time stamp, handle, result, no diagnostics, a string table, no additional header.
    let at = 4 + 8 + 4 + 4 + 1;
    const strings = message.readInt32LE(at);
    at += 4;
    for (let i = 0; i < strings; i++) at += 4 + Math.max(0, message.readInt32LE(at));
    return { type: message.readUInt16LE(2), result: message.readUInt32LE(4 + 8 + 4), rest: message.subarray(at + 3) };
  };

  const send = (type: number, body: Buffer, options: SendOptions = {}): number => {
    socket.write(encode(type, body, options));
    return requests;
  };

  return {
    socket,
    chunks,
    get messages() {
      return messages;
    },
    results,
    get received() {
      return received;
    },
    get isClosed() {
      return isClosed;
    },
    async open() {
      const limits = [u32(0), u32(65_535), u32(65_535), u32(0), u32(0)];
      socket.write(frame("HELF", ...limits, text(`opc.tcp://${host}:${port}/`)));
      await chunkOf("ACK");
      const requestId = ++requests;
      const security = [text("http://opcfoundation.org/UA/SecurityPolicy#None"), text(null), text(null)];
      const body = [nodeIdOf(TYPE.openSecureChannel), header(requestId), u32(0), u32(0), u32(1), text(null), u32(3_600_000)];
      socket.write(frame("OPNF", u32(0), ...security, u32(++sequence), u32(requestId), ...body));
      const opened = await chunkOf("OPN");
      channel = opened.readUInt32LE(8);
      // At the end: token id, time of making, lifetime, a nonce of no bytes.
      token = opened.readUInt32LE(opened.length - 4 - 4 - 8 - 4);
    },
    async login() {
      const description = [text("urn:raw"), text(null), Buffer.from([0]), u32(1), text(null), text(null), u32(0xffff_ffff)];
      const session = [text(null), text(`opc.tcp://${host}:${port}/`), text("raw"), text(null), text(null), double(60_000), u32(0)];
      const created = await answer(send(TYPE.createSession, Buffer.concat([...description, ...session])));
      if (created.result !== 0) throw new Error(`CreateSession: 0x${created.result.toString(16)}`);
      const sessionId = nodeIdLength(created.rest);
      authentication = Buffer.from(created.rest.subarray(sessionId, sessionId + nodeIdLength(created.rest.subarray(sessionId))));
      const nothing = [text(null), text(null)];
      const activation = Buffer.concat([...nothing, u32(0xffff_ffff), u32(0xffff_ffff), Buffer.from([0, 0, 0]), ...nothing]);
      const activated = await answer(send(TYPE.activateSession, activation));
      if (activated.result !== 0) throw new Error(`ActivateSession: 0x${activated.result.toString(16)}`);
    },
    send,
    encode,
    answer,
    stopReading() {
      isReading = false;
      socket.pause();
    },
    resumeReading() {
      if (!isReading) socket.resume();
      isReading = true;
    },
    forget() {
      isForgetting = true;
    },
    end() {
      socket.destroy();
    },
  };
}

/** Bytes that a node id takes (OPC 10000-6, 5.2.2.9). */
function nodeIdLength(bytes: Buffer): number {
  switch (bytes[0]) {
    case 0:
      return 2;
    case 1:
      return 4;
    case 2:
      return 7;
    case 4:
      return 19;
    default:
      return 7 + bytes.readInt32LE(3);
  }
}
