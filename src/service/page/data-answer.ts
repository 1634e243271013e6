import { toJson } from "../../base/json.ts";
import { jsonWithoutCredentials } from "../../base/plain-text.ts";

/** An answer of `/data/…`: JSON, or a file. */
export interface DataAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string | Buffer;
  /** Absent: it is no file. */
  readonly fileName?: string;
}

export const jsonAnswer = (status: number, data: object): DataAnswer => ({
  status,
  contentType: "application/json; charset=utf-8",
  body: `${toJson(data, jsonWithoutCredentials)}\n`,
});
