import { createHash } from "node:crypto";
import type { Layout, LayoutVariable } from "../../../model/layout.ts";
import { formatDataType } from "../../../model/value.ts";
import { type SparkplugType, sparkplugType } from "./datatypes.ts";
import type { Properties } from "./payload.ts";
import { GOOD, type MetricState, STALE } from "./reading.ts";

/** A metric of a device, over all births. */
export interface DeviceMetric {
  readonly name: string;
  /** One of its own among all metrics of the edge node. */
  readonly alias: number;
  readonly type: SparkplugType;
  /** Unit, comment and dimensions, as properties in each birth. */
  readonly about: Properties;
  /** The newest state that is known, with the time of its readout (epoch ms); undefined: none since the start. */
  last: (MetricState & { readonly time: number }) | undefined;
  /** The quality that a host has of it. */
  sentQuality: number;
}

/** By place in a layout; undefined: the variable is not published. */
type Places = readonly (DeviceMetric | undefined)[];

/**
 * A data source as a Sparkplug device. Its metrics are those of its current layout, and of older layouts whose readouts are still delivered: a
 * birth names all that will come. Kept over connections, so that aliases and current values are.
 */
export class Device {
  /** Identifier of the device: one topic level. */
  readonly id: string;
  /** It was born in this session, and has not died since. */
  isAlive = false;
  /** It is alive, and its birth still says what it is. */
  isBorn = false;
  /** Its source is read now. */
  isRead = false;
  /** Its birth said that it is read. */
  wasRead = false;
  /** The configuration has its source. */
  isConfigured = false;
  /** Time of the newest readout that was sent as current, epoch ms. */
  newestMs = Number.NEGATIVE_INFINITY;
  readonly #nextAlias: () => number;
  readonly #aliases = new Map<string, number>();
  #metrics = new Map<string, DeviceMetric>();
  #places = new WeakMap<Layout, Places>();
  #current = "";
  readonly #superseded = new Set<string>();

  constructor(id: string, nextAlias: () => number) {
    this.id = id;
    this.#nextAlias = nextAlias;
  }

  get metrics(): Iterable<DeviceMetric> {
    return this.#metrics.values();
  }

  /** It has a layout. */
  get isKnown(): boolean {
    return this.#current !== "";
  }

  /** The configuration has this layout now. */
  adopt(layout: Layout): void {
    const signature = signatureOf(layout);
    this.#superseded.delete(signature);
    if (signature === this.#current) return;
    if (this.isKnown) this.#superseded.add(this.#current);
    this.#current = signature;
    const before = this.#metrics;
    this.#metrics = new Map();
    this.#places = new WeakMap();
    this.isBorn = false;
    for (const variable of layout.variables) if (!variable.exploration) this.#add(variable.name, variable, before.get(variable.name));
  }

  /**
   * The metrics of a layout whose readouts are about to be sent. `isNew`: they are newly read, so that a layout which is not known yet is the
   * current one. A variable that an older layout has with another type comes as `name@type`.
   */
  placesOf(layout: Layout, isNew: boolean): Places {
    const known = this.#places.get(layout);
    if (known) return known;
    const signature = signatureOf(layout);
    if (!this.isKnown || (isNew && signature !== this.#current && !this.#superseded.has(signature))) this.adopt(layout);
    const places = layout.variables.map((variable) => (variable.exploration ? undefined : this.#metricOf(variable)));
    this.#places.set(layout, places);
    return places;
  }

  /** State of a metric in a birth. `why`: properties in addition. */
  stateAtBirth({ last }: DeviceMetric): MetricState & { readonly time: number | undefined } {
    if (!last) return { value: undefined, quality: STALE, why: undefined, time: undefined };
    return this.isRead ? last : { ...last, quality: STALE };
  }

  #metricOf(variable: LayoutVariable): DeviceMetric {
    const { datatype } = sparkplugType(variable.type);
    let { name } = variable;
    for (let found = this.#metrics.get(name); found; found = this.#metrics.get(name)) {
      if (found.type.datatype === datatype) return found;
      name += `@${formatDataType(variable.type)}`;
    }
    this.isBorn = false;
    return this.#add(name, variable, undefined);
  }

  #add(name: string, variable: LayoutVariable, before: DeviceMetric | undefined): DeviceMetric {
    const type = sparkplugType(variable.type);
    const isSame = before?.type.datatype === type.datatype;
    const key = `${type.datatype} ${name}`;
    const alias = this.#aliases.get(key) ?? this.#nextAlias();
    this.#aliases.set(key, alias);
    const last = isSame ? before.last : undefined;
    const made: DeviceMetric = { name, alias, type, about: aboutOf(variable), last, sentQuality: GOOD };
    this.#metrics.set(name, made);
    return made;
  }
}

/** Names of the properties that Ignition, the host of most plants, shows. */
function aboutOf({ unit, comment, type: { dimensions } }: LayoutVariable): Properties {
  return {
    ...(unit !== null && { engUnit: unit }),
    ...(comment !== null && { documentation: comment }),
    ...(dimensions && { dimensions: dimensions.join("x") }),
  };
}

const signatures = new WeakMap<Layout, string>();

/** Equal for layouts that make the same metrics. */
function signatureOf(layout: Layout): string {
  const known = signatures.get(layout);
  if (known !== undefined) return known;
  const parts = layout.variables.map(({ name, type, unit, comment, exploration }) => [
    name,
    formatDataType(type),
    unit,
    comment,
    exploration,
  ]);
  const signature = createHash("sha256").update(JSON.stringify(parts)).digest("base64");
  signatures.set(layout, signature);
  return signature;
}
