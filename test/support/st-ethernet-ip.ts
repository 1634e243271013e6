import { createRequire } from "node:module";

/** What is used of npm's st-ethernet-ip. Its types want fields that this project does not have. */
interface Tag {
  readonly value: unknown;
}
interface Group {
  add(tag: Tag): void;
}
interface Controller {
  connect(host: string, slot: number, setUp: boolean): Promise<void>;
  disconnect(): Promise<unknown>;
  newTag(name: string, program: string | null, subscribe: boolean, dimensions: number, elements: number): Tag;
  readTag(tag: Tag): Promise<void>;
  readTagGroup(group: Group): Promise<void>;
  readonly properties: { readonly name: string };
  readonly state: { readonly tagList: { readonly tags: readonly { readonly name: string; readonly program: string | null }[] } };
}

const load = createRequire(import.meta.url);
const library = load("st-ethernet-ip") as {
  readonly Controller: new (isConnected: boolean) => Controller;
  readonly Tag: new (name: string, program: string | null) => Tag;
  readonly TagGroup: new () => Group;
};
/** It connects to the port of its configuration, whatever it is asked for. */
const configuration = load("st-ethernet-ip/dist/config") as { EIP_PORT: number };

/** Values as it gives them: numbers, bigint, booleans, text, arrays, and structures as objects with their hidden members. */
export interface StEthernetIp {
  /** `Program:Main.Cycle`; of an array so many elements. Throws the status of CIP. */
  read(address: string, elements?: number): Promise<unknown>;
  /** All of them, in as few packets as it makes of them. */
  prepare(addresses: readonly string[]): { read(): Promise<void>; values(): readonly unknown[] };
  readonly controller: string;
  /** Every symbol, a program's with its program in front. */
  readonly symbols: readonly string[];
  close(): Promise<void>;
}

const PROGRAM = /^program:([^.]+)\.(.+)$/i;
const partsOf = (address: string): readonly [name: string, program: string | null] => {
  const [, program = null, name = address] = PROGRAM.exec(address) ?? [];
  return [name, program];
};

/** Its connections have 508 bytes; without one it sends everything through Unconnected Send. */
export async function openStEthernetIp(port: number, { slot = 0, isConnected = true, hasTagList = true } = {}): Promise<StEthernetIp> {
  configuration.EIP_PORT = port;
  const client = new library.Controller(isConnected);
  await client.connect("127.0.0.1", slot, hasTagList);
  return {
    async read(address, elements) {
      const [name, program] = partsOf(address);
      const tag = client.newTag(name, program, false, elements === undefined ? 0 : 1, elements ?? 1);
      await client.readTag(tag);
      return tag.value;
    },
    prepare(addresses) {
      const group = new library.TagGroup();
      const tags = addresses.map((address) => new library.Tag(...partsOf(address)));
      for (const tag of tags) group.add(tag);
      return { read: () => client.readTagGroup(group), values: () => tags.map(({ value }) => value) };
    },
    controller: client.properties.name,
    symbols: client.state.tagList.tags.map(({ name, program }) => (program ? `Program:${program}.${name}` : name)),
    close: async () => void (await client.disconnect()),
  };
}
