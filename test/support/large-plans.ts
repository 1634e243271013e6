import type { AnyDriver, Limits, Point, Request } from "../../drivers/driver.ts";
import { parseAddress as parseFins } from "../../drivers/fins/address.ts";
import { placeOf } from "../../drivers/fins/areas.ts";
import fins from "../../drivers/fins/driver.ts";
import { settingsSchema as finsSettings } from "../../drivers/fins/settings.ts";
import modbus from "../../drivers/modbus_tcp/driver.ts";
import { limitsOf } from "../../drivers/modbus_tcp/plan.ts";
import opcua from "../../drivers/opcua/driver.ts";
import { planSteps as pluginSteps } from "../../drivers/plugin/plan.ts";
import { planSteps as profileSteps } from "../../drivers/profile/plan.ts";
import s7 from "../../drivers/s7/driver.ts";
import s7plus from "../../drivers/s7plus/driver.ts";
import { parseTag as parseCip } from "../../drivers/vendor_a/address.ts";
import cip from "../../drivers/vendor_a/driver.ts";
import { type KnownSymbol, locate } from "../../drivers/vendor_a/locate.ts";
import { maxDataBytes } from "../../drivers/vendor_a/plan.ts";
import { settingsSchema as cipSettings } from "../../drivers/vendor_a/settings.ts";
import gateway from "../../drivers/vendor_gateway/driver.ts";
import type { Steps } from "../../src/base/timer.ts";

const FINS_SETTINGS = finsSettings.parse({});
const CIP_SETTINGS = cipSettings.parse({});

export const VARIABLES = 100_000;

/** A source of 100,000 variables, all of them looked up, and how it is planned. */
export interface LargePlan {
  steps(): Steps<readonly Request[]>;
}

type Located = Pick<Point, "address" | "type">;

const pointsOf = <P extends Located>(at: (n: number) => P): (P & Pick<Point, "index">)[] =>
  Array.from({ length: VARIABLES }, (_, index) => ({ index, ...at(index) }));

function planOf(driver: AnyDriver, limits: object, at: (n: number) => Located): LargePlan {
  const points = pointsOf(at);
  const all: Limits = { ...LIMITS, ...limits };
  const { planSteps } = driver;
  if (!planSteps) throw new Error(`${driver.type} plans in one go`);
  return { steps: () => planSteps(points, all) };
}

/** Addresses of a driver by their texts. */
const textsOf = (driver: AnyDriver, textOf: (n: number) => string, type?: Point["type"]) => {
  const settings = driver.settings.parse({});
  return (n: number): Located => driver.parseAddress(textOf(n), type, settings);
};

function finsAt(textOf: (n: number) => string): (n: number) => Located {
  return (n) => {
    const { address, type } = parseFins(textOf(n), undefined, FINS_SETTINGS);
    const place = placeOf(address, "cs");
    if (typeof place === "string") throw new Error(place);
    return { address: { ...address, place }, type };
  };
}

const DINT = { code: 0xc4 };
const PART = {
  id: 0x201,
  name: "Part",
  handle: 0x2201,
  bytes: 16,
  members: ["A", "B", "C", "D"].map((name, i) => ({ name, offset: i * 4, type: DINT, isHidden: false })),
};

function cipAt(textOf: (n: number) => string, of: Omit<KnownSymbol, "name">): (n: number) => Located {
  return (n) => {
    const { address, type } = parseCip(textOf(n), undefined, CIP_SETTINGS);
    const located = locate(address, type, { name: String(address.steps[0]), ...of });
    return { address: { ...address, place: located.place }, type: located.type };
  };
}

const FINS = { maxBytes: 1998, maxWords: 999, maxItems: 167, maxGap: 998 };
const CIP = { maxPoints: 65_536, maxBytes: maxDataBytes(4000), messageBytes: 4000, maxItems: 65_536 };
const S7 = { maxBytes: 942, pduBytes: 960, maxItems: 20, maxGap: 64 };
const REAL = { scalar: "float32" } as const;
/** Words of a bank of extended memory. */
const BANK = 16_000;
const member = (n: number): string => "ABCD"[n % 4] ?? "A";

const DRIVERS: readonly (readonly [name: string, driver: AnyDriver, limits: object, at: (n: number) => Located])[] = [
  [
    "modbus_tcp",
    modbus,
    limitsOf(modbus.settings.parse({}) as never),
    textsOf(modbus, (n) => `${n < 60_000 ? "holding" : "input"}:${n % 60_000}`),
  ],
  [
    "modbus_tcp of many units",
    modbus,
    limitsOf(modbus.settings.parse({}) as never),
    textsOf(modbus, (n) => `${1 + (n % 200)}/holding:${n}`.replace(/\d+$/, (at) => String(Number(at) % 60_000))),
  ],
  ["s7", s7, S7, textsOf(s7, (n) => `DB${1 + Math.floor(n / 1000)}.DBD${(n % 1000) * 4}`, REAL)],
  ["s7 scattered", s7, S7, textsOf(s7, (n) => `DB${1 + Math.floor(n / 1000)}.DBD${(n % 1000) * 40}`, REAL)],
  ["fins", fins, FINS, finsAt((n) => `E${Math.floor(n / BANK)}_${n % BANK}`)],
  ["fins scattered", fins, { ...FINS, maxGap: 0 }, finsAt((n) => `E${Math.floor(n / BANK)}_${(n % BANK) * 2}`)],
  ["vendor_a tags", cip, CIP, cipAt((n) => `Line${1 + (n % 7)}_Drive${n}_Speed`, { type: DINT, dimensions: [] })],
  ["vendor_a arrays", cip, CIP, cipAt((n) => `Values${Math.floor(n / 50_000)}[${n % 50_000}]`, { type: DINT, dimensions: [50_000] })],
  ["vendor_a structures", cip, CIP, cipAt((n) => `P${n >> 2}.${member(n)}`, { type: { structure: PART }, dimensions: [] })],
  ["vendor_a array of them", cip, CIP, cipAt((n) => `Parts[${n >> 2}].${member(n)}`, { type: { structure: PART }, dimensions: [25_000] })],
  [
    "s7plus",
    s7plus,
    { maxBytes: 8192, maxItems: 50 },
    textsOf(s7plus, (n) => `8A0E${(1 + Math.floor(n / 1000)).toString(16).padStart(4, "0")}.${(1 + (n % 1000)).toString(16)}`, REAL),
  ],
  ["opcua", opcua, {}, textsOf(opcua, (n) => `ns=2;s=Bulk.${n}`)],
  ["vendor_gateway", gateway, { maxRequestBytes: 65_536 }, textsOf(gateway, (n) => `Press.V${n}`, REAL)],
];

const LIMITS: Limits = { maxPoints: 1000, maxBytes: 65_536, inFlight: 1 };

function profile(): LargePlan {
  const points = pointsOf((n) => ({ type: REAL, address: { request: `r${n >> 1}`, args: [] } as never }));
  return { steps: () => profileSteps(points, LIMITS) };
}

function plugin(): LargePlan {
  const points = pointsOf((n) => ({ type: REAL, address: { pluginText: `v${n}` } }));
  return { steps: () => pluginSteps(points, LIMITS) };
}

/** One or more for each driver: what lies together, what is scattered, what is in structures. */
export const LARGE_PLANS: readonly (readonly [name: string, make: () => LargePlan])[] = [
  ...DRIVERS.map(([name, ...plan]) => [name, () => planOf(...plan)] as const),
  ["profile", profile],
  ["plugin", plugin],
];
