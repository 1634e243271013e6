import { expect, onTestFinished, test } from "vitest";
import { freePort } from "../../test/support/free-port.ts";
import { silentLog } from "../model/context.ts";
import { codesOf, textsOf } from "../model/testing/warnings.ts";
import { Health } from "./health.ts";

test("serves while the policy lets it, and says why it does not", async () => {
  const listen = `127.0.0.1:${await freePort()}`;
  let refusal: string | undefined = "127.0.0.1 is closed";
  let notReady: string | undefined;
  let note: string | undefined;
  const errors: string[] = [];
  const health = new Health({
    listen,
    listenRefusal: () => refusal,
    metrics: { contentType: "text/plain", text: async () => "figures\n" },
    isHealthy: () => true,
    notReady: () => notReady,
    readyNote: () => note,
    log: { ...silentLog, error: (_, message) => errors.push(message) },
    onTrouble: ({ text }) => errors.push(text),
  });
  onTestFinished(() => health.close());
  const answer = () =>
    fetch(`http://${listen}/metrics`).then(
      (response) => response.text(),
      () => "nobody",
    );
  const closed = "http.listen: 127.0.0.1 is closed; metrics and health are not served";
  expect(await answer()).toBe("nobody");
  expect(codesOf(health.notes())).toContain("listening_forbidden");
  expect(textsOf(health.notes())).toEqual([closed]);
  refusal = undefined;
  health.look();
  await expect.poll(answer).toBe("figures\n");
  expect(textsOf(health.notes())).toEqual([]);
  const ready = async () => {
    const response = await fetch(`http://${listen}/readyz`);
    return [response.status, await response.text()];
  };
  expect(await ready()).toEqual([200, "ok\n"]);
  notReady = "nothing has been stored for 12 s";
  expect(await ready()).toEqual([503, "not ready: nothing has been stored for 12 s; see collector status\n"]);
  notReady = undefined;
  note = "1 data source is left out";
  expect(await ready()).toEqual([200, "ok; 1 data source is left out\n"]);
  refusal = "127.0.0.1 is closed";
  health.look();
  health.look();
  await expect.poll(answer).toBe("nobody");
  expect(errors).toEqual([closed, closed]);
});
