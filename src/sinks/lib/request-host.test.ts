import { expect, test } from "vitest";
import { requestHostProblem } from "./request-host.ts";

test.each(["broker.example", "10.0.0.1", "fd00::7", "a_b-c.d", "localhost."])("%s goes into a request as it is", (host) => {
  expect(requestHostProblem(host)).toBeUndefined();
});
test.each(["a\r\nX: y", "a b", "a/b", "fe80::1%eth0", "[fd00::7]", "", "bröker.example", "-a", "a@b", "x".repeat(300)])(
  "%j goes into none",
  (host) => {
    expect(requestHostProblem(host)).toEqual(expect.any(String));
  },
);
