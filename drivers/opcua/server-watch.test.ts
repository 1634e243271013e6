import { expect, it } from "vitest";
import { FaultError } from "../../src/model/fault.ts";
import { driverContext } from "../../test/support/driver-context.ts";
import type { RawValue } from "./binary.ts";
import { ServerWatch } from "./server-watch.ts";

it("sees another list of namespaces and another start also where the server lets nobody browse", async () => {
  const run = { namespaces: ["urn:ua", "urn:a"], startTime: "2026-11-20T09:00:00.000Z" };
  let [list, start] = [run.namespaces, run.startTime];
  const good = (value: unknown) => ({ status: 0, value }) as RawValue;
  const watch = new ServerWatch(run, {
    call: () => Promise.reject(new FaultError("access_denied", "Browse: BadUserAccessDenied", { scope: "everything" })),
    namespaces: { indexOf: () => 0 },
    read: async () => [good(list), good(start), good(5), good(255)],
  });
  const look = async () => (await watch.look(true, driverContext())).otherRun;
  expect(await look()).toBeUndefined();
  expect((await watch.look(true, driverContext())).state).toMatchObject({ value: 5 });
  list = ["urn:ua", "urn:a", "urn:b"];
  expect(await look()).toBe("the server has another list of namespaces");
  [list, start] = [run.namespaces, "2026-11-21T09:00:00.000Z"];
  expect(await look()).toBe("the server has started again");
});
