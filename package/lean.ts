import type { Plugin } from "esbuild";

/**
 * An import statement of one of Node's own modules reads everything that it exports, and some of that loads much when it is read:
 * `WebSocket` of node:http takes 2 MiB of heap and 13 MiB in all, rare parts of node:fs, node:util and node:process 3 MiB each, in every
 * thread. Taken by name only what is used is read.
 */
const BUILTINS = /^node:(http|fs|util|process)$/;
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

/** Keeps out of the bundle what costs memory and is never used. */
export const lean: Plugin = {
  name: "lean",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: BUILTINS }, ({ path, kind, namespace }) =>
      kind === "import-statement" && namespace === "file" ? { path, namespace: "builtin" } : undefined,
    );
    onLoad({ filter: /.*/, namespace: "builtin" }, ({ path }) => ({
      contents: `module.exports = process.getBuiltinModule(${JSON.stringify(path)});`,
      loader: "js",
    }));
    onResolve({ filter: /^(ws|socks|@fastify\/(ajv|fast-json-stringify)-compiler|light-my-request)$/ }, ({ path, importer }) => {
      const from = importer.split("node_modules/").at(-1) ?? "";
      return UNUSED[path]?.test(from) ? { path, namespace: "unused" } : undefined;
    });
    onLoad({ filter: /.*/, namespace: "unused" }, () => ({ contents: "module.exports = {};", loader: "js" }));
  },
};
