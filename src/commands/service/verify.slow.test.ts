import { expect, test } from "vitest";
import { commandLine } from "../../../test/support/command-line.ts";
import { freePort } from "../../../test/support/free-port.ts";

test("collector verify SINK says why a sink cannot be verified: its type, its payload, no manifest, no broker", async () => {
  const { well, run } = await commandLine();
  const at = ["host=127.0.0.1", `port=${await freePort()}`];
  await well("sink", "add", "hosted", "opcua", "port=4841", "anonymous=true");
  await well("sink", "add", "values", "mqtt", ...at, "topic=p/{source}/{variable}", "payload=value");
  await well("sink", "add", "plain", "mqtt", ...at, "topic=p/{source}");
  await well("sink", "add", "far", "platform");
  await well("sink", "add", "proved", "mqtt", ...at, "topic=p/{source}", "manifest=true");
  const refused = async (name: string): Promise<readonly [number, string]> => {
    const { code, out, err } = await run("verify", name, "--for", "1s");
    return [code, out + err];
  };
  expect(await refused("hosted")).toEqual([2, expect.stringMatching(/of the type opcua, which has no manifest/)]);
  expect(await refused("values")).toEqual([3, expect.stringMatching(/payload: value names neither source nor variable/)]);
  expect(await refused("plain")).toEqual([3, expect.stringMatching(/has no manifest: .*collector sink set plain manifest=true/)]);
  expect(await refused("far")).toEqual([3, expect.stringMatching(/has no manifest: .*collector sink set far manifest=true/)]);
  await well("sink", "set", "far", "manifest=true");
  expect(await refused("far")).toEqual([2, expect.stringMatching(/--for: .* name a time of a platform with --since and --until/)]);
  const unread = await run("verify", "far");
  expect([unread.code, unread.err]).toEqual([
    3,
    expect.stringMatching(/knows of no readout that the platform has acknowledged in this time/),
  ]);
  expect(await refused("proved")).toEqual([3, expect.stringMatching(/Next step: /)]);
  expect(await refused("other")).toEqual([2, expect.stringMatching(/there is no data source or data sink other/)]);
  const json = await run("verify", "proved", "--for", "1s", "--json");
  expect([json.code, JSON.parse(json.out)]).toEqual([
    3,
    expect.objectContaining({ ok: false, sink: "proved", reason: expect.any(Object) }),
  ]);
  const mistaken = await run("sink", "set", "values", "manifest=true");
  expect([mistaken.code, mistaken.err]).toEqual([2, expect.stringMatching(/manifest: payload: value.*use envelope, columns or rows/)]);
});
