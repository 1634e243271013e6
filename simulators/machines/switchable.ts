/** The place where a machine listens; port 0 takes a free one. */
export interface Place {
  readonly port: number;
  /** Absent: 127.0.0.1. */
  readonly host?: string;
}

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

/** Starts a device at this place, again and again there. `first` is the one that runs first, `current` the one that runs now. */
export async function switchable<D extends Device>(
  { port: at, host = "127.0.0.1" }: Place,
  start: (place: { readonly port: number; readonly host: string }) => Promise<D>,
): Promise<Power & { readonly first: D; current(): D | undefined }> {
  const first = await start({ port: at, host });
  const { port } = first;
  let device: D | undefined = first;
  return {
    first,
    current: () => device,
    port: () => port,
    async switchOff() {
      const was = device;
      device = undefined;
      await was?.close();
    },
    async switchOn() {
      device ??= await start({ port, host });
    },
  };
}
