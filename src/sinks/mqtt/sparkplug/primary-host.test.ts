import { describe, expect, it } from "vitest";
import { PrimaryHost } from "./primary-host.ts";
import { idProblem } from "./topics.ts";

const state = (online: unknown, timestamp: unknown): Buffer => Buffer.from(JSON.stringify({ online, timestamp }));

describe("PrimaryHost", () => {
  it("is online after a STATE message that says so, and not before", () => {
    const host = new PrimaryHost();
    expect(host.isOnline).toBe(false);
    expect(host.take(state(true, 5))).toBe(true);
    expect(host.isOnline).toBe(true);
  });

  it("takes what has the same time or a later one, and ignores what is older", () => {
    const host = new PrimaryHost();
    host.take(state(true, 100));
    expect(host.take(state(false, 99))).toBe(true);
    expect(host.take(state(false, 100))).toBe(false);
    expect(host.take(state(true, 50))).toBe(false);
    expect(host.take(state(true, 101))).toBe(true);
  });

  it.each([
    ["the text of Sparkplug 2.2", Buffer.from("ONLINE")],
    ["no object", Buffer.from("null")],
    ["a list", Buffer.from("[true, 5]")],
    ["no time", Buffer.from('{"online":true}')],
    ["a time that is a text", state(true, "5")],
    ["a flag that is a text", state("true", 5)],
    ["a time beyond all numbers", Buffer.from('{"online":true,"timestamp":1e999}')],
    ["nothing", Buffer.alloc(0)],
    ["more than a STATE message needs", Buffer.from(`{"online":true,"timestamp":5,"x":"${"x".repeat(5000)}"}`)],
    ["bytes", Buffer.from([0xff, 0x00, 0x80])],
  ])("ignores %s", (_, payload) => {
    expect(new PrimaryHost().take(payload)).toBe(false);
  });

  it("never throws on a STATE message cut at any byte", () => {
    const whole = state(true, 1_790_000_000_000);
    for (let length = 0; length < whole.length; length++) expect(new PrimaryHost().take(whole.subarray(0, length))).toBe(false);
  });
});

describe("idProblem", () => {
  it("takes any text of one topic level", () => {
    expect(["Sparkplug B Devices", "Werk-Süd", "status", "a%b"].map(idProblem)).toEqual([undefined, undefined, undefined, undefined]);
  });

  it.each(["", "a/b", "a+b", "#", "a\nb", "\ud800", "x".repeat(201)])("refuses %j", (id) => {
    expect(idProblem(id)).toBeTypeOf("string");
  });
});
