import mqtt from "mqtt";

/** An ordinary MQTT client that looks at what the collector published. It comes back to a broker that was away. */
export interface Subscriber {
  messages(): number;
  /** Values and errors in all messages. */
  received(): number;
  /** The same, each of one data source, time and variable once: about 100 bytes are kept of each. */
  distinct(): number;
  /** Messages that say that values were dropped. */
  gaps(): number;
  /** Epoch ms of the newest readout of a data source; 0: there was none. */
  newest(source: string): number;
  /** How often it has subscribed: with each connection. */
  subscriptions(): number;
  /** Newest of each variable, in order of first arrival. */
  values(): readonly {
    readonly source: string;
    readonly variable: string;
    readonly text: string;
    readonly ageMs: number;
    readonly bad: boolean;
  }[];
  close(): Promise<void>;
}

interface Message {
  readonly source: string;
  readonly readouts: readonly {
    readonly ts: string;
    readonly values: Readonly<Record<string, unknown>>;
    readonly errors?: Readonly<Record<string, { readonly fault: string }>>;
  }[];
}

/** Settles once it has subscribed. QoS 0: what a broker has handed on it need not ask for again, and keeps nothing that its end takes along. */
export async function createSubscriber(port: number, topic: string): Promise<Subscriber> {
  // Not by the library: it would say that a topic is subscribed before the new broker has said so.
  const options = { clientId: "demo-subscriber", protocolVersion: 4, reconnectPeriod: 50, resubscribe: false } as const;
  const client = await mqtt.connectAsync(`mqtt://127.0.0.1:${port}`, options);
  // Each failed attempt is one; the next one follows.
  client.on("error", () => {});
  const distinct = new Set<string>();
  const newestOf = new Map<string, number>();
  let subscriptions = 0;
  let gaps = 0;
  const subscribe = async (): Promise<void> => {
    await client.subscribeAsync(topic, { qos: 0 });
    subscriptions++;
  };
  const newest = new Map<string, { source: string; variable: string; text: string; ts: number; bad: boolean }>();
  let messages = 0;
  let received = 0;
  client.on("message", (at, payload) => {
    if (/\/(status|meta)(\/|$)/.test(at)) return;
    if (at.endsWith("/gap")) {
      gaps++;
      return;
    }
    const text = payload.toString();

    const message = JSON.parse(text) as Message;
    messages++;
    for (const { ts, values, errors = {} } of message.readouts) {
      newestOf.set(message.source, Math.max(newestOf.get(message.source) ?? 0, Date.parse(ts)));
      const take = (variable: string, shown: string, bad: boolean) => {
        received++;
        distinct.add(`${message.source}\0${ts}\0${variable}`);
        newest.set(`${message.source}\0${variable}`, { source: message.source, variable, text: shown, ts: Date.parse(ts), bad });
      };
      // Digits as they were sent: JSON.parse would round a 64-bit integer.
      for (const [variable, value] of Object.entries(values))
        take(variable, typeof value === "number" ? digitsOf(text, variable, value) : String(value), false);
      for (const [variable, { fault }] of Object.entries(errors)) take(variable, fault, true);
    }
  });
  await subscribe();
  // A connection that breaks before it has subscribed is followed by another.
  client.on("connect", () => void subscribe().catch(() => {}));
  return {
    messages: () => messages,
    received: () => received,
    distinct: () => distinct.size,
    gaps: () => gaps,
    newest: (source) => newestOf.get(source) ?? 0,
    subscriptions: () => subscriptions,
    values: () => [...newest.values()].map(({ ts, ...value }) => ({ ...value, ageMs: Date.now() - ts })),
    close: () => client.endAsync(true),
  };
}

function digitsOf(message: string, variable: string, value: number): string {
  if (Number.isSafeInteger(value) || !Number.isInteger(value)) return String(value);
  const at = message.lastIndexOf(`${JSON.stringify(variable)}:`);
  return /^-?\d+/.exec(message.slice(at + JSON.stringify(variable).length + 1))?.[0] ?? String(value);
}
