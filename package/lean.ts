import { isBuiltin } from "node:module";
import path from "node:path";
import type { Plugin } from "esbuild";

/**
 * By the library that would load it. Ways out of mqtt: the collector gives it sockets of its own. Validation and writing by JSON schema, and
 * requests without a network, of fastify: the API validates by zod (src/api/server/app.ts).
 */
const UNUSED: Readonly<Record<string, RegExp>> = {
  ws: /^mqtt\//,
  socks: /^mqtt\//,
  "@fastify/ajv-compiler": /^fastify\//,
  "@fastify/fast-json-stringify-compiler": /^fastify\//,
  "light-my-request": /^fastify\//,
};

/**
 * Keeps out of the bundle what costs memory and is never used.
 *
 * An import statement of one of Node's own modules reads everything that it exports, and some of that loads much when it is read: `WebSocket`
 * of node:http takes 2 MiB of heap and 13 MiB in all, rare parts of node:fs, node:util and node:process 3 MiB each, in every thread. Taken by
 * name only what is used is read.
 */
export const lean: Plugin = {
  name: "lean",
  setup({ onResolve, onLoad, initialOptions }) {
    onResolve({ filter: /^[a-z_:/]+$/ }, ({ path: name, kind, namespace, importer }) => {
      if (kind !== "import-statement" || namespace !== "file" || !isBuiltin(name)) return undefined;
      // One for each file that imports it, which lies where that file does and has what that file uses.
      const of = path.relative(initialOptions.absWorkingDir ?? ".", importer).replace("node_modules/", "");
      return { path: `${name} of ${of}`, namespace: "builtin", sideEffects: false, pluginData: name };
    });
    onLoad({ filter: /.*/, namespace: "builtin" }, ({ pluginData }) => ({ contents: byName(String(pluginData)), loader: "js" }));
    onResolve({ filter: /^(ws|socks|@fastify\/(ajv|fast-json-stringify)-compiler|light-my-request)$/ }, ({ path: name, importer }) => {
      const from = importer.split("node_modules/").at(-1) ?? "";
      return UNUSED[name]?.test(from) ? { path: name, namespace: "unused" } : undefined;
    });
    onLoad({ filter: /.*/, namespace: "unused" }, () => ({ contents: "module.exports = {};", loader: "js" }));
  },
};

/** One of Node's own modules, each export a constant: the bundler keeps those that are used. */
function byName(module: string): string {
  const names = Object.keys(process.getBuiltinModule(module) ?? {}).filter((name) => /^[A-Za-z_$][\w$]*$/.test(name) && name !== "default");
  const taken = names.map((name, at) => `const $${at} = /* @__PURE__ */ (() => all().${name})();`);
  const exported = names.map((name, at) => `$${at} as ${name}`).join(", ");
  const all = `const all = () => process.getBuiltinModule(${JSON.stringify(module)});`;
  return `${[all, ...taken].join("\n")}\nexport { ${exported} };\nexport default /* @__PURE__ */ all();\n`;
}
