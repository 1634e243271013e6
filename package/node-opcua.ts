import { readFileSync } from "node:fs";
import path from "node:path";
import type { Plugin } from "esbuild";

/** What node-opcua reads from its own folders at run time, by the package it lies in; it goes beside the bundle. */
export const NODE_OPCUA_FILES: Readonly<Record<string, readonly string[]>> = {
  "node-opcua-nodesets": ["nodesets/Opc.Ua.NodeSet2.ndjson.gz"],
};

/** In place of a catalogue of 40 companion nodesets by their files: the standard one, which every server has, already parsed. */
const NODESETS = `
import { readFileSync } from "node:fs";
import path from "node:path";
const file = path.join(import.meta.dirname, "nodesets/Opc.Ua.NodeSet2.ndjson.gz");
export const nodesets = { get standard() { return { name: file, source: new Uint8Array(readFileSync(file)) }; } };
`;

const OWN_VERSION = /JSON\.parse\(fs\.readFileSync\(path\.join\(here, "\.\.", "package\.json"\), "utf8"\)\)\s*\.version/;

/** Lets the bundler take node-opcua, which looks for files beside its own sources. Throws where those have changed. */
export const nodeOpcua: Plugin = {
  name: "node-opcua",
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]node-opcua-nodesets[\\/]dist[\\/]nodeset_nodejs\.js$/ }, () => ({ contents: NODESETS, loader: "js" }));
    onLoad({ filter: /[\\/]node-opcua-server[\\/]dist[\\/]opcua_server\.js$/ }, ({ path: file }) => {
      const { version } = JSON.parse(readFileSync(path.join(path.dirname(file), "../package.json"), "utf8")) as { version: string };
      const text = readFileSync(file, "utf8");
      if (!OWN_VERSION.test(text)) throw new Error(`${file} no longer reads its version as it did; look at package/node-opcua.ts`);
      return { contents: text.replace(OWN_VERSION, JSON.stringify(version)), loader: "js" };
    });
  },
};
