/** What is done with a device from outside. */
export interface Power {
  port(): number;
  /** The device goes off the network: its port refuses. */
  switchOff(): Promise<void>;
  /** It is back on the same port. */
  switchOn(): Promise<void>;
}

interface Device {
  readonly port: number;
  close(): Promise<void>;
}

/** Starts a device on this port of 127.0.0.1 (0: a free one), again and again there. `first` is the one that runs first. */
export async function switchable<D extends Device>(
  at: number,
  start: (port: number) => Promise<D>,
): Promise<Power & { readonly first: D }> {
  const first = await start(at);
  const { port } = first;
  let device: D | undefined = first;
  return {
    first,
    port: () => port,
    async switchOff() {
      const was = device;
      device = undefined;
      await was?.close();
    },
    async switchOn() {
      device ??= await start(port);
    },
  };
}
