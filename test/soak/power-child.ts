import Database from "better-sqlite3";
import { run } from "./workload.ts";

/** What is recorded: one life of a buffer. Arguments: file, events file, commits, seed, FULL or NORMAL. */
const [file = "", events = "", commits = "0", seed = "0", synchronous = "FULL"] = process.argv.slice(2);

if (synchronous !== "FULL") {
  // To show that the images tell a buffer that is safe from one that is not.
  const pragma = Database.prototype.pragma;
  Database.prototype.pragma = function (source, options) {
    return pragma.call(this, source.replace("synchronous = FULL", `synchronous = ${synchronous}`), options);
  };
}
run(file, events, Number(commits), Number(seed));
