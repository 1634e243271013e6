import type { DetailsType } from "../../model/details.ts";

/** A program behind a port, as far as its answer tells. */
export interface Recognised {
  /** In the words of the trade. */
  readonly protocol: string;
  /** The type of data source that reads it; absent: no driver does. */
  readonly type?: DetailsType;
  readonly maker?: string;
  readonly model?: string;
  readonly firmware?: string;
  /** Fields that a data source of the type needs as well as host and port: `key=value`. */
  readonly fields?: readonly string[];
}

/** The meaning of the bytes of a connection so far. */
export interface Look {
  /** Absent: nothing that is known. */
  readonly found?: Recognised;
  /** All that the hello sends up to here, the first request included. */
  readonly requests: readonly Buffer[];
  /** Nothing that comes later tells more. */
  readonly isDone: boolean;
  /** The device answers, but another hello may tell what it is. */
  readonly isVague?: boolean;
}

const MAX_TEXT = 80;

/** Text of a device: printable ASCII on one line, of bounded length; undefined where nothing is left. Pure. */
export function deviceText(bytes: Uint8Array): string | undefined {
  const raw = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, MAX_TEXT)).toString("latin1");
  const [text = ""] = raw.split("\0");
  const plain = text.replaceAll(/[^\x20-\x7e]/g, "").trim();
  return plain === "" ? undefined : plain.replaceAll(/ {2,}/g, " ");
}

/** `1756-L83E/B, firmware 33.011`; "" where the device told neither. Pure. */
export function deviceWords({ maker, model, firmware }: Recognised): string {
  const name = [maker, model].filter((part) => part !== undefined).join(" ");
  return [name, firmware === undefined ? "" : `firmware ${firmware}`].filter((part) => part !== "").join(", ");
}

/** `EtherNet/IP (Rockwell Automation 1756-L83E/B, firmware 33.011)`. Pure. */
export function recognisedWords(found: Recognised): string {
  const device = deviceWords(found);
  return device === "" ? found.protocol : `${found.protocol} (${device})`;
}
