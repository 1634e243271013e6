import * as z from "zod";
import { WORD_ORDERS } from "../lib/bytes.ts";
import { AUTO, encodingSetting } from "../lib/encoding.ts";

/** The local options of a Modbus TCP source. */
export const settingsSchema = z.strictObject({
  unit: z.int().min(0).max(255).default(1).describe("Unit id of addresses that name none: 0 to 255"),
  order: z
    .enum(WORD_ORDERS)
    .default("ABCD")
    .describe("Order of the bytes of a value (A the most significant) where its address names none"),
  encoding: encodingSetting(AUTO),
  transport: z.enum(["tcp", "udp"]).default("tcp").describe("What carries the frames: tcp, or udp with one frame in a datagram"),
  framing: z
    .enum(["tcp", "tcp_without_ids", "rtu"])
    .default("tcp")
    .describe(
      "tcp: with the header of Modbus TCP; rtu: as on a serial line, with a CRC (serial servers in transparent mode); tcp_without_ids: for devices that answer with another transaction id. The last two have one request under way",
    ),
  max_registers: z.int().min(1).max(125).default(125).describe("Registers in one read; small devices take fewer than 125"),
  max_coils: z.int().min(1).max(2000).default(2000).describe("Coils or discrete inputs in one read"),
  max_gap: z
    .int()
    .min(0)
    .max(124)
    .default(16)
    .describe("Unused registers that one read may bridge; 0 never reads them (registers that clear on read)"),
  max_gap_coils: z.int().min(0).max(1999).default(256).describe("The same for coils and discrete inputs"),
  min_pause: z
    .int()
    .min(0)
    .max(60_000)
    .default(0)
    .describe("Milliseconds between an answer and the next request; slow gateways and serial lines need some"),
  repeat_first: z
    .boolean()
    .default(false)
    .describe("The first request of a connection is sent once more: for devices that drop it, such as data loggers of inverters"),
  in_flight: z
    .int()
    .min(1)
    .max(16)
    .optional()
    .describe("Requests under way at once; absent: 1, and up to 8 once the device was seen to answer them as it does one after the other"),
});

export type ModbusSettings = z.infer<typeof settingsSchema>;
