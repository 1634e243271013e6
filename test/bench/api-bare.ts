import { readFileSync } from "node:fs";
import { fastify } from "fastify";

/** A bare fastify route that answers the same bytes to every request: nothing is looked up, checked or written. Argument: their file. */
const bytes = readFileSync(process.argv[2] ?? "");
const app = fastify({ logger: false });
app.get("/api/v2/data-sources", (_request, reply) => reply.type("application/json; charset=utf-8").send(bytes));
console.log(await app.listen({ host: "127.0.0.1", port: 0 }));
