import { generateKeyPairSync, randomBytes, sign } from "node:crypto";
import { hex } from "./simulator-wire.ts";

/** A certificate and its key, PEM. */
export interface PlcCertificate {
  readonly cert: string;
  readonly key: string;
}

const DAY_MS = 86_400_000;
const VALID_DAYS = 3650;
// X.690: tags; X.520: commonName; RFC 5758: ecdsa-with-SHA256.
const [INTEGER, BIT_STRING, UTF8, UTC_TIME, SEQUENCE, SET] = [0x02, 0x03, 0x0c, 0x17, 0x30, 0x31];
const COMMON_NAME = hex("0603550403");
const ECDSA_SHA256 = hex("300a06082a8648ce3d040302");

/** One value in X.690's distinguished encoding. */
function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(parts);
  const { length } = body;
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), body]);
}

const time = (ms: number): Buffer => {
  const digits = new Date(ms).toISOString().replaceAll(/\D/g, "");
  return der(UTC_TIME, Buffer.from(`${digits.slice(2, 14)}Z`));
};

/** A self-signed certificate (EC P-256, X.509 version 1), as an engineering project makes one for a CPU: its name is no name of the network. */
export function makePlcCertificate(name = "PLC_1/Communication-1"): PlcCertificate {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const names = der(SEQUENCE, der(SET, der(SEQUENCE, COMMON_NAME, der(UTF8, Buffer.from(name)))));
  const serial = randomBytes(8);
  // Positive, without leading zeros.
  serial[0] = ((serial[0] ?? 0) & 0x3f) | 0x40;
  const validity = der(SEQUENCE, time(Date.now() - DAY_MS), time(Date.now() + VALID_DAYS * DAY_MS));
  const publicBytes = publicKey.export({ type: "spki", format: "der" });
  const signed = der(SEQUENCE, der(INTEGER, serial), ECDSA_SHA256, names, validity, names, publicBytes);
  const signature = der(BIT_STRING, Buffer.from([0]), sign("sha256", signed, privateKey));
  const body = der(SEQUENCE, signed, ECDSA_SHA256, signature).toString("base64");
  const lines = body.match(/.{1,64}/g)?.join("\n") ?? "";
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
  };
}
