import { toJson } from "../../base/json.ts";
import { numberText, shortFloat32 } from "../../base/number.ts";
import type { DataType, Scalar, Value } from "../../model/value.ts";

const MAX_SHOWN = 20;

/** The value as JSON writes it: a float32 with its shortest digits. */
export function jsonValue(value: Value, type: DataType): Value {
  const one = (scalar: Scalar): Scalar => (type.scalar === "float32" && typeof scalar === "number" ? shortFloat32(scalar) : scalar);
  return typeof value === "object" ? value.map(one) : one(value);
}

/** The value for people, on one line; long arrays are cut, and say so. Text keeps its control characters: whoever prints it escapes them. */
export function textValue(value: Value, type: DataType): string {
  const shown = jsonValue(value, type);
  if (typeof shown !== "object") return scalarText(shown);
  const cells = shown.slice(0, MAX_SHOWN).map((scalar) => (typeof scalar === "string" ? toJson(scalar) : scalarText(scalar)));
  return `[${cells.join(", ")}${shown.length > MAX_SHOWN ? `, … ${shown.length - MAX_SHOWN} more` : ""}]`;
}

const scalarText = (scalar: Scalar): string => (typeof scalar === "number" ? numberText(scalar) : String(scalar));

/** `host:port` for people, an IPv6 address in brackets. */
export function hostPort(host: string, port: number | undefined): string {
  if (port === undefined) return host;
  return `${host.includes(":") ? `[${host}]` : host}:${port}`;
}
