import type { WireEvent } from "../../model/wire.ts";

/** Shorter ones are found by chance in what is none. */
const LEAST_BYTES = 4;

/**
 * Events without the bytes of data that hold one of the secrets, in any of the forms in which protocols carry a text, also where it is
 * spread over several frames. A second look: drivers mark what they know to be secret. Pure.
 */
export function withoutSecrets(events: readonly WireEvent[], secrets: readonly string[]): readonly WireEvent[] {
  const forms = secrets.flatMap(formsOf).filter(({ length }) => length >= LEAST_BYTES);
  if (forms.length === 0) return events;
  const holding = new Set<WireEvent>();
  const streams = Map.groupBy(
    events.filter(({ bytes }) => bytes.length > 0),
    ({ connection, direction }) => `${connection} ${direction}`,
  );
  for (const stream of streams.values()) {
    const text = Buffer.concat(stream.map(({ bytes }) => bytes));
    for (const form of forms)
      for (let at = text.indexOf(form); at >= 0; at = text.indexOf(form, at + 1)) markTouched(stream, at, at + form.length, holding);
  }
  return events.map((event) => (holding.has(event) ? { ...event, bytes: new Uint8Array(0), withheld: "secret" as const } : event));
}

function markTouched(stream: readonly WireEvent[], from: number, to: number, touched: Set<WireEvent>): void {
  let begin = 0;
  for (const event of stream) {
    const end = begin + event.bytes.length;
    if (begin < to && end > from) touched.add(event);
    begin = end;
  }
}

/** UTF-8, UTF-16 in both orders, and these as hexadecimal digits and Base64. */
function formsOf(secret: string): readonly Buffer[] {
  const utf16 = Buffer.from(secret, "utf16le");
  const plain = [Buffer.from(secret), utf16, Buffer.from(utf16).swap16()];
  return plain.flatMap((bytes) => {
    const hex = bytes.toString("hex");
    const base64 = bytes.toString("base64").replace(/=+$/, "");
    // Its last character depends on what follows.
    const texts = [hex, hex.toUpperCase(), base64.slice(0, bytes.length % 3 === 0 ? undefined : -1)];
    return [bytes, ...texts.map((text) => Buffer.from(text))];
  });
}
