import fc from "fast-check";
import type { AnyDriver } from "../../drivers/driver.ts";
import * as fins from "../../drivers/fins/address.ts";
import { settingsSchema as finsSettings } from "../../drivers/fins/settings.ts";
import { FORMS as FINS_FORMS } from "../../drivers/fins/spellings.ts";
import { SPELLINGS as FINS } from "../../drivers/fins/spellings-table.ts";
import { parseType as finsType } from "../../drivers/fins/types.ts";
import type { Form, ToolSpellings } from "../../drivers/lib/spellings.ts";
import { parseType as step7Type } from "../../drivers/lib/step7-types.ts";
import * as modbus from "../../drivers/modbus_tcp/address.ts";
import { FUNCTION_OF } from "../../drivers/modbus_tcp/frames.ts";
import { settingsSchema as modbusSettings } from "../../drivers/modbus_tcp/settings.ts";
import { FORMS as MODBUS_FORMS } from "../../drivers/modbus_tcp/spellings.ts";
import { SPELLINGS as MODBUS } from "../../drivers/modbus_tcp/spellings-table.ts";
import { parseType as modbusType } from "../../drivers/modbus_tcp/types.ts";
import * as opcua from "../../drivers/opcua/address.ts";
import { FORMS as OPCUA_FORMS } from "../../drivers/opcua/spellings.ts";
import { SPELLINGS as OPCUA } from "../../drivers/opcua/spellings-table.ts";
import * as s7 from "../../drivers/s7/address.ts";
import { settingsSchema as s7Settings } from "../../drivers/s7/settings.ts";
import { FORMS as S7_FORMS } from "../../drivers/s7/spellings.ts";
import { SPELLINGS as S7 } from "../../drivers/s7/spellings-table.ts";
import * as s7plus from "../../drivers/s7plus/address.ts";
import { settingsSchema as s7plusSettings } from "../../drivers/s7plus/settings.ts";
import { FORMS as S7PLUS_FORMS } from "../../drivers/s7plus/spellings.ts";
import { SPELLINGS as S7PLUS } from "../../drivers/s7plus/spellings-table.ts";
import * as vendorA from "../../drivers/vendor_a/address.ts";
import { parseAddress as parseVendorA } from "../../drivers/vendor_a/parse.ts";
import { fileText } from "../../drivers/vendor_a/pccc/address.ts";
import { settingsSchema as vendorASettings } from "../../drivers/vendor_a/settings.ts";
import { FORMS as VENDOR_A_FORMS } from "../../drivers/vendor_a/spellings.ts";
import { SPELLINGS as VENDOR_A } from "../../drivers/vendor_a/spellings-table.ts";
import { FaultError } from "../../src/model/fault.ts";
import { type DataType, formatDataType } from "../../src/model/value.ts";

export interface Subject {
  readonly driver: Pick<AnyDriver, "parseType">;
  readonly forms: readonly Form[];
  readonly tools: readonly ToolSpellings[];
  /** The place of an address, as the rows write it. Throws FaultError. */
  place(address: string, type: DataType | undefined): string;
  /** Valid addresses of ours. */
  readonly own: fc.Arbitrary<string>;
}

const number = (max: number) => fc.oneof(fc.nat(max), fc.nat(20));
const optional = (part: fc.Arbitrary<string>) => fc.oneof(fc.constant(""), part);
const joined = (...parts: readonly fc.Arbitrary<string>[]) => fc.tuple(...parts).map((texts) => texts.join(""));
const one = (...texts: readonly string[]) => fc.constantFrom(...texts);

/** Drivers that have a table of the addresses of other tools. */
export const SUBJECTS: Readonly<Record<string, Subject>> = {
  modbus_tcp: {
    driver: { parseType: modbusType },
    forms: MODBUS_FORMS,
    tools: MODBUS,
    place(text, wanted) {
      const { address, type } = modbus.parseAddress(text, wanted, modbusSettings.parse({}));
      const area = Object.entries(FUNCTION_OF).find(([, code]) => code === address.functionCode)?.[0];
      const bit = address.bit === undefined ? "" : `.${address.bit}`;
      return `${address.unit}/${area} ${address.start}+${address.length}${bit} ${address.coding ?? formatDataType(type)} ${address.order}`;
    },
    own: fc.oneof(
      joined(
        optional(fc.nat(255).map((unit) => `${unit}/`)),
        one("holding:", "input:", "Holding:"),
        number(65_000).map(String),
        optional(fc.nat(15).map((bit) => `.${bit}`)),
        optional(fc.integer({ min: 1, max: 100 }).map((count) => `[${count}]`)),
        one("", "@ABCD", "@cdab"),
      ),
      joined(one("coil:", "discrete:"), number(65_000).map(String), one("", "[8]")),
      joined(
        one("0", "1", "3", "4"),
        fc.integer({ min: 1, max: 9999 }).map((n) => String(n).padStart(4, "0")),
      ),
      joined(
        one("3", "4"),
        fc.integer({ min: 1, max: 65_000 }).map((n) => String(n).padStart(5, "0")),
        one("", ".3", "[4]", "@DCBA"),
      ),
    ),
  },
  s7: {
    driver: { parseType: step7Type },
    forms: S7_FORMS,
    tools: S7,
    place(text, wanted) {
      const { address, type } = s7.parseAddress(text, wanted, s7Settings.parse({}));
      const { area, block, start, length, bit, kind, chars } = address;
      const [of, at] = [block === 0 ? "" : block, kind === "BOOL" ? `.${bit}` : ""];
      return `${area}${of} ${start}+${length}${at} ${kind}${chars === undefined ? "" : `(${chars})`} ${formatDataType(type)}`;
    },
    own: fc.oneof(
      joined(one("DB", "%DB", "db", "DI"), fc.integer({ min: 1, max: 999 }).map(String)).chain((block) =>
        joined(
          fc.constant(`${block}.${block.replace("%", "").slice(0, 2)}`),
          fc.oneof(
            joined(
              one("X"),
              number(9999).map(String),
              fc.nat(7).map((bit) => `.${bit}`),
              one("", "[4]"),
            ),
            joined(one("B", "W", "D"), number(9999).map(String), one("", "[4]")),
          ),
        ),
      ),
      joined(
        one("M", "I", "E", "Q", "A", "V", "%M"),
        fc.oneof(joined(number(999).map(String), one(".0", ".7")), joined(one("B", "W", "D"), number(999).map(String), one("", "[3]"))),
      ),
      joined(one("T", "C", "Z"), number(999).map(String), one("", "[3]")),
      joined(
        one("DB1,", "DI7,", "M,", "I,", "Q,"),
        one("INT", "DI", "REAL", "R", "WORD", "DTL", "S5TIME", "CHAR", "LREAL"),
        number(999).map(String),
        one("", "[5]"),
      ),
      joined(one("DB1,", "M,"), one("X4.1", "STRING20.30", "S20.30[2]", "REAL10.5", "BYTE4")),
      joined(one("DB1."), one("W2", "X0.1", "B3", "D8")),
    ),
  },
  fins: {
    driver: { parseType: finsType },
    forms: FINS_FORMS,
    tools: FINS,
    place(text, wanted) {
      const { address, type } = fins.parseAddress(text, wanted, finsSettings.parse({}));
      const { area, bank, start, count, isFlag, bit, kind } = address;
      const of = bank === undefined ? area : `${area}${bank}_`;
      return `${of}${start}+${count}${kind === "BOOL" && !isFlag ? `.${bit}` : ""} ${kind} ${formatDataType(type)}`;
    },
    own: fc.oneof(
      joined(
        one("D", "DM", "W", "WR", "H", "HR", "A", "AR", "CIO", "d", "L", "G", "E0_", "EC_", "E18_", "EM"),
        number(9999).map(String),
        fc.oneof(
          one("", "[8]"),
          fc.nat(15).map((bit) => `.${String(bit).padStart(2, "0")}`),
        ),
      ),
      joined(one("T", "TIM", "C", "CNT"), number(4095).map(String), one("", "[3]")),
    ),
  },
  vendor_a: {
    driver: { parseType: vendorA.parseType },
    forms: VENDOR_A_FORMS,
    tools: VENDOR_A,
    place(text, wanted) {
      const { address, type } = parseVendorA(text, wanted, vendorASettings.parse({}));
      if ("letter" in address) return `file ${fileText(address)} ${formatDataType(type)}`;
      const { program, steps, bit, count } = address;
      const path = steps.map((step) => (typeof step === "string" ? step : `#${step.join(",")}`)).join(" ");
      return `${program ?? "controller"} ${path}${bit === undefined ? "" : ` bit ${bit}`}${count === undefined ? "" : ` x${count}`} ${formatDataType(type)}`;
    },
    own: fc.oneof(
      joined(
        one("", "Program:Main."),
        one("Tag", "_x9", "N7", "Counts", "O", "T4", "Motor_1"),
        one("", "[3]", "[1,2]", "[1, 2, 3]"),
        one("", ".Speed", ".Sub[2]", ".LEN.ACC", ".DATA"),
        one("", ".5", ".31"),
      ),
      joined(one("Tag", "Arr[2]"), one("{10}", " {2}")),
      joined(one("Local:1:I", "Rack:O", "AENT:3:C", "Local:2:I1"), one("", ".Data", ".Data.3", ".Ch[2].Value")),
      joined(one("N7:", "B3:", "L10:", "S:", "I:", "O:"), number(255).map(String), one("", "/3", "{4}")),
      joined(one("F8:", "ST9:", "T4:", "C5:", "R6:", "A10:"), number(255).map(String)),
    ),
  },
  opcua: {
    driver: {},
    forms: OPCUA_FORMS,
    tools: OPCUA,
    place(text, wanted) {
      const { address, type } = opcua.parseAddress(text, wanted);
      const of = (namespace: opcua.Namespace) => (typeof namespace === "number" ? String(namespace) : namespace.uri);
      if (address.kind === "path")
        return `${address.elements.map(({ namespace, name }) => `/${of(namespace)}:${name}`).join("")} ${formatDataType(type)}`;
      return `${of(address.namespace)} ${address.id.type} ${address.id.value} ${formatDataType(type)}`;
    },
    own: fc.oneof(
      joined(
        one("", "ns=2;", "ns=65535;", "nsu=http://example.com/plant;", "nsu=urn:a%3Bb;"),
        one(
          "i=2258",
          "i=0",
          "s=Plant.Temp",
          's="DB"."x"[3]',
          "s=a;b|c",
          "s=[x]y",
          "g=09087e75-8e5e-499b-954f-f2a8624db28a",
          "b=M/RbKBsRVkePCePcx24oRA==",
        ),
      ),
      joined(
        one("/Objects", "/0:Objects", "/Objects/2:Plant"),
        one("", "/2:Temp", "/nsu=http://example.com/plant;Temp", "/a&/b", "/<x>.y", "/2!x"),
      ),
    ),
  },
  s7plus: {
    driver: { parseType: step7Type },
    forms: S7PLUS_FORMS,
    tools: S7PLUS,
    place(text, wanted) {
      const { address } = s7plus.parseAddress(text, wanted, s7plusSettings.parse({}));
      // The program of the controller has none of these names.
      const meaning = s7plus.otherMeaning(text);
      if (meaning !== undefined) throw new FaultError("address_invalid", meaning);
      return (address.levels ?? []).map(({ name, indices }) => `${name}${indices ? `#${indices.join(",")}` : ""}`).join(" ");
    },
    own: fc.oneof(
      joined(one('"Motor_DB"', "Motor_DB", '"Line 1.Data"', "Types"), one("", ".speed", '."a b"', ".spare[2].position.x", ".grid[0,2]")),
      one('"Temp 1"', 'MArea."Temp 1"', "IArea.Start", "8A0E0001.11", "52.A"),
    ),
  },
};
