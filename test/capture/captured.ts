import { recordIn } from "../../src/lib/capture/ring.ts";
import { withoutSecrets } from "../../src/lib/capture/secrets.ts";
import { CaptureWriter } from "../../src/lib/capture/write.ts";

export interface CaptureOf {
  readonly type: string;
  readonly standardPort?: number | undefined;
  readonly secrets?: readonly string[];
}

/** What a ring holds, as the service writes it. */
export function captureOf(memory: SharedArrayBuffer, { type, standardPort, secrets = [] }: CaptureOf): Buffer {
  const { events, peers } = recordIn(memory);
  const writer = new CaptureWriter({ version: "1.0.0", source: "press-1", type, standardPort });
  const blocks = withoutSecrets(events, secrets).map((event) => writer.take(event, peers.get(event.connection)));
  return Buffer.concat([writer.head(), ...blocks]);
}

/** A secret as protocols carry it: plain, in UTF-16, and both as hexadecimal digits and Base64. */
export const formsOf = (secret: string): readonly Buffer[] =>
  [Buffer.from(secret), Buffer.from(secret, "utf16le")].flatMap((bytes) => [
    bytes,
    Buffer.from(bytes.toString("hex")),
    Buffer.from(bytes.toString("base64").replace(/.?=*$/, "")),
  ]);
