import { type DecodedMetric, type DecodedPayload, decoded, valueIn } from "./testing.ts";

/** One value as a host application has it. */
export interface HostValue {
  readonly device: string;
  readonly name: string;
  readonly time: number;
  readonly value: unknown;
  readonly quality: number;
  readonly isHistorical: boolean;
  readonly properties: Readonly<Record<string, unknown>>;
}

export interface HostMessage {
  readonly verb: string;
  readonly device: string | undefined;
  readonly payload: DecodedPayload;
}

interface BornMetric {
  readonly name: string;
  readonly datatype: number;
  quality: number;
  time: number;
}

/**
 * A host application in miniature: takes the messages of one edge node in order, with the decoder of Eclipse Tahu, and notes where they break a
 * rule of Sparkplug 3.0 that shows in the messages.
 */
export class TestHost {
  readonly faults: string[] = [];
  readonly messages: HostMessage[] = [];
  /** Values of DDATA. */
  readonly values: HostValue[] = [];
  /** By device: the metrics of its last birth, by alias; absent: it is not born, or dead. */
  readonly devices = new Map<string, Map<number, BornMetric>>();
  /** Metrics of the last NBIRTH, by name. */
  readonly node = new Map<string, DecodedMetric>();
  #aliases = new Set<number>();
  #seq: number | undefined;
  /** bdSeq of the last NBIRTH that no NDEATH followed; undefined: the node is dead. */
  bdSeq: number | undefined;

  take(topic: string, bytes: Uint8Array, { qos = 0, retain = false }: { readonly qos?: number; readonly retain?: boolean } = {}): void {
    const [namespace, , verb = "", , device] = topic.split("/");
    const payload = decoded(bytes);
    this.messages.push({ verb, device, payload });
    this.#check(namespace === "spBv1.0", `${topic}: its namespace`);
    this.#check(!retain && qos === (verb === "NDEATH" ? 1 : 0), `${topic}: retain ${retain}, QoS ${qos}`);
    this.#check((device !== undefined) === verb.startsWith("D"), `${topic}: its levels`);
    this.#check(payload.timestamp !== undefined, `${topic}: no timestamp`);
    if (verb === "NDEATH") this.#nodeDeath(payload);
    else this.#takeInOrder(topic, verb, device ?? "", payload);
  }

  /** All but NDEATH have a sequence number. */
  #takeInOrder(topic: string, verb: string, device: string, payload: DecodedPayload): void {
    this.#check(
      verb === "NBIRTH" ? payload.seq === 0 : this.#seq !== undefined && payload.seq === (this.#seq + 1) % 256,
      `${topic}: seq ${payload.seq} after ${this.#seq}`,
    );
    this.#seq = payload.seq;
    if (verb === "NBIRTH") this.#nodeBirth(payload);
    else if (this.bdSeq === undefined) this.faults.push(`${topic}: the node is not born`);
    else if (verb === "DBIRTH") this.#deviceBirth(device, payload);
    else if (verb === "DDEATH") this.#check(this.#forget(device), `${topic}: the device is not born`);
    else if (verb === "DDATA") this.#deviceData(device, payload);
    else this.#check(verb === "NDATA", `${topic}: its verb`);
  }

  /** The current values of a device by name, as its last birth has them. */
  birthOf(device: string): Readonly<Record<string, DecodedMetric & { readonly is: unknown }>> {
    const birth = this.messages.findLast((message) => message.verb === "DBIRTH" && message.device === device);
    return Object.fromEntries(
      (birth?.payload.metrics ?? []).map((metric) => [metric.name, { ...metric, is: this.#valueOf(metric.datatype ?? 0, metric) }]),
    );
  }

  #check(isSo: boolean, fault: string): void {
    if (!isSo) this.faults.push(fault);
  }

  #nodeDeath({ seq, metrics }: DecodedPayload): void {
    const [bdSeq] = metrics;
    this.#check(seq === undefined && metrics.length === 1 && bdSeq?.name === "bdSeq" && bdSeq.datatype === 4, "NDEATH: its contents");
    if (Number(bdSeq?.value) !== this.bdSeq) return;
    this.bdSeq = undefined;
    this.devices.clear();
  }

  #nodeBirth({ metrics }: DecodedPayload): void {
    this.devices.clear();
    this.#aliases = new Set();
    this.node.clear();
    for (const metric of metrics) {
      this.#bornMetric("NBIRTH", metric);
      this.node.set(metric.name ?? "", metric);
    }
    const [bdSeq, rebirth] = [this.node.get("bdSeq"), this.node.get("Node Control/Rebirth")];
    this.#check(bdSeq?.datatype === 4 && Number(bdSeq.value) <= 255, "NBIRTH: bdSeq");
    this.#check(rebirth?.datatype === 11 && rebirth.value === false && rebirth.alias === undefined, "NBIRTH: Rebirth");
    this.bdSeq = Number(bdSeq?.value);
  }

  #deviceBirth(device: string, { metrics }: DecodedPayload): void {
    this.#forget(device);
    const born = new Map<number, BornMetric>();
    for (const metric of metrics) {
      this.#bornMetric(`DBIRTH ${device}`, metric);
      const { alias = -1, name = "", datatype = 0, timestamp = 0, properties } = metric;
      this.#check(
        alias > 0 && ![...born.values()].some((other) => other.name === name),
        `DBIRTH ${device}: ${name} twice, or without an alias`,
      );
      born.set(alias, { name, datatype, quality: Number(properties?.["Quality"]?.value), time: timestamp });
    }
    this.devices.set(device, born);
  }

  /** False: it was not born. */
  #forget(device: string): boolean {
    for (const alias of this.devices.get(device)?.keys() ?? []) this.#aliases.delete(alias);
    return this.devices.delete(device);
  }

  /** Each metric of a birth has these. */
  #bornMetric(where: string, metric: DecodedMetric): void {
    const { name, alias, timestamp, datatype, isNull } = metric;
    this.#check(
      name !== undefined && timestamp !== undefined && datatype !== undefined && datatype >= 1 && datatype <= 34,
      `${where}: ${name}`,
    );
    this.#check((isNull === true) === (metric.field === undefined), `${where}: ${name} has both, or neither, a value and is_null`);
    if (alias !== undefined) this.#check(!this.#aliases.has(alias), `${where}: the alias ${alias} twice`);
    if (alias !== undefined) this.#aliases.add(alias);
    this.#checkQuality(where, metric);
  }

  #checkQuality(where: string, { properties }: DecodedMetric): void {
    const quality = properties?.["Quality"];
    if (quality) this.#check(quality.type === 3 && [0, 192, 500].includes(quality.value as number), `${where}: Quality ${quality.value}`);
    for (const [key, { type, value }] of Object.entries(properties ?? {}))
      this.#check(type > 0 && value !== undefined, `${where}: property ${key}`);
  }

  #deviceData(device: string, { metrics }: DecodedPayload): void {
    const born = this.devices.get(device);
    if (!born) {
      this.faults.push(`DDATA ${device}: it is not born`);
      return;
    }
    this.#check(metrics.length > 0, `DDATA ${device}: no metrics`);
    for (const metric of metrics) {
      const { name, alias = -1, timestamp: time, datatype, isHistorical = false, isNull, properties } = metric;
      const known = born.get(alias);
      const where = `DDATA ${device} ${alias}`;
      this.#check(known !== undefined && name === undefined && datatype === undefined && time !== undefined, where);
      this.#check((isNull === true) === (metric.field === undefined), `${where}: is_null`);
      this.#checkQuality(where, metric);
      if (!known || time === undefined) continue;
      const quality = properties?.["Quality"]?.value as number | undefined;
      if (!isHistorical) {
        this.#check(time >= known.time || known.time - time > 600_000 || known.quality === 500, `${where}: ${time} after ${known.time}`);
        known.time = time;
        known.quality = quality ?? known.quality;
      }
      const value = this.#valueOf(known.datatype, metric);
      const plain = Object.fromEntries(Object.entries(properties ?? {}).map(([key, property]) => [key, property.value]));
      this.values.push({ device, name: known.name, time, value, quality: quality ?? known.quality, isHistorical, properties: plain });
    }
  }

  #valueOf(datatype: number, metric: DecodedMetric): unknown {
    return metric.field === undefined ? null : valueIn(datatype, metric);
  }
}
