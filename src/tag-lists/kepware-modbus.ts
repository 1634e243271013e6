import type { JsonObject } from "./json-text.ts";
import { isWide } from "./kepware-tag.ts";

/**
 * Settings of a Modbus device of Kepware that say what an address of it means. Their meaning is that of the driver's help ("Zero-Based
 * Addressing: one is subtracted", "First Word Low"), which was not opened for this: unverified against Kepware itself.
 */
interface ModbusDevice {
  /** True, as by default: 400001 is the first register. False: 400000 is. */
  readonly subtractsOne: boolean;
  /** True, as by default: bits count from 0. False: from 1. */
  readonly bitsFromZero: boolean;
  /** True: bit 0 is the most significant one. */
  readonly isModiconBits: boolean;
  /** False: the bytes of a register are swapped. */
  readonly isModbusBytes: boolean;
  readonly firstWordLow: boolean;
  readonly firstDwordLow: boolean;
}

/** Settings begin with the name of their driver: `modbus_ethernet.DEVICE_FIRST_WORD_LOW`, and another one of serial lines. */
const setting = (device: JsonObject, name: string): boolean | undefined => {
  const key = Object.keys(device).find((one) => one.endsWith(`.DEVICE_${name}`));
  const value = key === undefined ? undefined : device[key];
  return typeof value === "boolean" ? value : undefined;
};
const flag = (device: JsonObject, name: string, otherwise: boolean): boolean => setting(device, name) ?? otherwise;

/** False: the order of words is the default of the program. Pure. */
export const saysWordOrder = (device: JsonObject): boolean => setting(device, "FIRST_WORD_LOW") !== undefined;

const deviceOf = (device: JsonObject): ModbusDevice => ({
  subtractsOne: flag(device, "ZERO_BASED_ADDRESSING", true),
  bitsFromZero: flag(device, "ZERO_BASED_BIT_ADDRESSING", true),
  isModiconBits: flag(device, "MODICON_BIT_ORDER", false),
  isModbusBytes: flag(device, "MODBUS_BYTE_ORDER", true),
  firstWordLow: flag(device, "FIRST_WORD_LOW", true),
  firstDwordLow: flag(device, "FIRST_DWORD_LOW", true),
});

/** An address of a Modbus device in the form that counts from 1, with the order of its bytes; a problem: it has no such form. Pure. */
export function modbusAddress(address: string, type: string, settings: JsonObject): string | { readonly problem: string } {
  const match = /^([0134])(\d{4,5})(?:\.(\d{1,2})|(\.\d{1,3}[HL]))?( ?\[\d+\](?: ?\[\d+\])?)?$/.exec(address);
  if (!match) return address;
  const [, area = "", digits = "", bit, text, count = ""] = match;
  const device = deviceOf(settings);
  const number = Number(digits) + (device.subtractsOne ? 0 : 1);
  const place = `${area}${String(number).padStart(digits.length, "0")}`;
  if (place.length > 6) return { problem: "there is no register of that number" };
  // Texts (`400001.20H`) have an order of their own.
  if (text !== undefined) return device.isModbusBytes ? `${place}${text}${count}` : { problem: SWAPPED_TEXT };
  if (bit !== undefined) return withBit(place, Number(bit), device);
  if (area === "0" || area === "1") return `${place}${count}`;
  if (!isWide(type)) return device.isModbusBytes ? `${place}${count}` : `${place}${count}@BADC`;
  const isLong = /^(llong|qword|double)/i.test(type);
  if (isLong && device.firstWordLow !== device.firstDwordLow)
    return { problem: "the words of a value of 64 bits are in an order that is not read here: First Word Low and First DWord Low differ" };
  const order = device.firstWordLow ? (device.isModbusBytes ? "CDAB" : "DCBA") : device.isModbusBytes ? "ABCD" : "BADC";
  return `${place}${count.replaceAll(" ", "")}@${order}`;
}

const SWAPPED_TEXT =
  "the order of its characters is not clear, because Modbus Byte Order is off in its device; add it with collector variables add and compare";

function withBit(place: string, bit: number, { bitsFromZero, isModiconBits }: ModbusDevice): string | { readonly problem: string } {
  const fromZero = bitsFromZero ? bit : bit - 1;
  if (fromZero < 0 || fromZero > 15) return { problem: "there is no such bit in a register" };
  return `${place}.${isModiconBits ? 15 - fromZero : fromZero}`;
}
