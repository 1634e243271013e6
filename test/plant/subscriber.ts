import mqtt from "mqtt";

/** An ordinary MQTT client that looks at what the collector published. */
export interface Subscriber {
  messages(): number;
  /** Values and errors in all messages. */
  received(): number;
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

export async function createSubscriber(port: number, topic: string): Promise<Subscriber> {
  const client = await mqtt.connectAsync(`mqtt://127.0.0.1:${port}`, { clientId: "demo-subscriber", protocolVersion: 4 });
  const newest = new Map<string, { source: string; variable: string; text: string; ts: number; bad: boolean }>();
  let messages = 0;
  let received = 0;
  client.on("message", (at, payload) => {
    if (/\/(status|meta)(\/|$)/.test(at)) return;
    const text = payload.toString();
    const message = JSON.parse(text) as Message;
    messages++;
    for (const { ts, values, errors = {} } of message.readouts) {
      const take = (variable: string, shown: string, bad: boolean) => {
        received++;
        newest.set(`${message.source}\0${variable}`, { source: message.source, variable, text: shown, ts: Date.parse(ts), bad });
      };
      // Digits as they were sent: JSON.parse would round a 64-bit integer.
      for (const [variable, value] of Object.entries(values))
        take(variable, typeof value === "number" ? digitsOf(text, variable, value) : String(value), false);
      for (const [variable, { fault }] of Object.entries(errors)) take(variable, fault, true);
    }
  });
  await client.subscribeAsync(topic, { qos: 1 });
  return {
    messages: () => messages,
    received: () => received,
    values: () => [...newest.values()].map(({ ts, ...value }) => ({ ...value, ageMs: Date.now() - ts })),
    close: () => client.endAsync(true),
  };
}

function digitsOf(message: string, variable: string, value: number): string {
  if (Number.isSafeInteger(value) || !Number.isInteger(value)) return String(value);
  const at = message.lastIndexOf(`${JSON.stringify(variable)}:`);
  return /^-?\d+/.exec(message.slice(at + JSON.stringify(variable).length + 1))?.[0] ?? String(value);
}
