import { expect, test } from "vitest";
import { hostProblem } from "./host.ts";

test.each(["192.168.0.10", "press-1", "press_1.hall.example", "localhost", "fd00::1", "::1", "fe80::1%eth0", "::ffff:10.0.0.1", "müller"])(
  "%s is a host",
  (text) => expect(hostProblem(text)).toBeUndefined(),
);

test.each([
  ["192.168.0.10:502", "a port; write 192.168.0.10, and 502 as port"],
  ["press-1:", "a port; write press-1"],
  ["[fd00::1]:502", "a port, brackets; write fd00::1, and 502 as port"],
  ["[fd00::1]", "brackets; write fd00::1"],
  [" press-1 ", "blanks; write press-1"],
  ["press 1", "blanks; write press1"],
  ["press-1\n", "blanks; write press-1"],
  ["http://press-1", "a scheme (http://); write press-1"],
  ["opc.tcp://press-1:4840/path", "a scheme (opc.tcp://), a port, more than a host; write press-1, and 4840 as port"],
  ["tcp://user:Canary@press-1", "a scheme (tcp://), more than a host; write press-1"],
  ["press-1/path", "more than a host; write press-1"],
])("%j holds %s", (text, words) => {
  expect(hostProblem(text)).toBe(`expected a host name or an IP address, but it holds ${words}`);
});

test.each([
  ["192.168.1.300", "300 is too large for an IPv4 address, whose numbers go to 255"],
  ["192.168.1", "an IPv4 address has four numbers, such as 192.168.1.30"],
  ["192.168.1.30.4", "an IPv4 address has four numbers, such as 192.168.1.30"],
  ["192.168.001.030", "write 192.168.1.30"],
  ["192,168,1,30", "write 192.168.1.30"],
  ["192.168.1.30.", "write 192.168.1.30"],
  ["192.168..1.30", "write 192.168.1.30"],
])("%j is no address: %s", (text, words) => {
  expect(hostProblem(text)).toBe(`expected a host name or an IP address; ${words}`);
});

test.each(["42", "10-0-0-5", "1.example", "press.300"])("%s is a name", (text) => expect(hostProblem(text)).toBeUndefined());

test.each(["", " ", "http://", ":502", "a:b:c", "fd00::1::2", "fe80::1%"])("%j is none", (text) => {
  expect(hostProblem(text)).toContain("expected a host name or an IP address");
});

test("what is very long is not given back", () => {
  expect(hostProblem(`${"x".repeat(5000)}:1`)?.length).toBeLessThan(200);
});
