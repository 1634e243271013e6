import { request } from "node:http";

export interface LocalRequest {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly body?: string | undefined;
}

export interface LocalAnswer {
  readonly status: number | undefined;
  readonly body: string;
}

/** One request over a local socket. Rejects as the socket does, with the signal, and where the answer is longer than `maxBytes`. */
export function requestLocal(
  socketPath: string,
  { method, path, body }: LocalRequest,
  maxBytes: number,
  signal: AbortSignal,
): Promise<LocalAnswer> {
  return new Promise((done, fail) => {
    const ask = request({ socketPath, path, method, signal }, (response) => {
      const chunks: Buffer[] = [];
      let length = 0;
      response.on("data", (chunk: Buffer) => {
        length += chunk.length;
        if (length > maxBytes) ask.destroy(new Error(`the answer is longer than ${maxBytes} bytes`));
        else chunks.push(chunk);
      });
      response.on("error", fail);
      response.on("end", () => done({ status: response.statusCode, body: Buffer.concat(chunks).toString("utf8") }));
    });
    ask.on("error", fail);
    ask.end(body);
  });
}
