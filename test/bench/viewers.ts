/**
 * Viewers of the local page for its bench, in a process of their own. Arguments: the address of their stream of events, how many they are.
 * Prints a line when all have had a first event; then for each line on its standard input how many events and bytes have come, as JSON.
 */
const [url = "", count = "1"] = process.argv.slice(2);
let events = 0;
let bytes = 0;

async function watch(seen: () => void): Promise<void> {
  const { ok, status, body } = await fetch(url, { headers: { accept: "text/event-stream" } });
  if (!ok || !body) throw new Error(`${url} answered ${status}`);
  for await (const chunk of body) {
    bytes += chunk.length;
    // An event ends with an empty line.
    const ended = Buffer.from(chunk).toString("latin1").split("\n\n").length - 1;
    events += ended;
    if (ended > 0) seen();
  }
  throw new Error(`${url} ended the stream`);
}

await Promise.all(Array.from({ length: Number(count) }, () => new Promise<void>((seen, failed) => void watch(seen).catch(failed))));
console.log(JSON.stringify({ viewers: Number(count) }));
process.stdin.on("data", () => console.log(JSON.stringify({ events, bytes })));
