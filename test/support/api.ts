/** A person's way to the configuration API: plain requests, an error with the answer's words where it refuses. */
export interface Api {
  post(path: string, body: unknown): Promise<Record<string, unknown> & { readonly uuid: string }>;
  get(path: string): Promise<Record<string, unknown>>;
  patch(path: string, body: unknown): Promise<void>;
  remove(path: string): Promise<void>;
}

export function apiOf(url: string, key: string): Api {
  const call = async (method: string, path: string, body?: unknown): Promise<unknown> => {
    const response = await fetch(`${url}/api${path}`, {
      method,
      headers: { authorization: key, ...(body !== undefined && { "content-type": "application/json" }) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(10_000),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text === "" ? undefined : JSON.parse(text);
  };
  return {
    post: async (path, body) => (await call("POST", path, body)) as Record<string, unknown> & { readonly uuid: string },
    get: async (path) => (await call("GET", path)) as Record<string, unknown>,
    patch: async (path, body) => void (await call("PATCH", path, body)),
    remove: async (path) => void (await call("DELETE", path)),
  };
}

export interface ModbusSource {
  readonly name: string;
  /** On 127.0.0.1. */
  readonly port: number;
  /** Absent: what a new data source has. */
  readonly readout_interval?: number;
  /** Addresses by name. */
  readonly variables: Readonly<Record<string, string>>;
}

/** Configures it for this collector; its uuid. */
export async function addModbusSource(
  api: Api,
  collector: string,
  { name, port, readout_interval, variables }: ModbusSource,
): Promise<string> {
  const { uuid } = await api.post("/v2/data-sources", {
    name,
    collector,
    machine: "00000000-0000-4000-8000-000000000001",
    details: { type: "modbus_tcp", host: "127.0.0.1", port },
  });
  if (readout_interval !== undefined) await api.patch(`/v2/data-sources/${uuid}`, { readout_interval });
  for (const [variable, address] of Object.entries(variables))
    await api.post("/ext/v1/variables", { data_source: uuid, name: variable, address });
  return uuid;
}
