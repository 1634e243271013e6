import { describe, expect, it } from "vitest";
import { sessionFence } from "./fence.ts";
import { CREATE_SESSION_BODY, createSession, deleteSession, getAttribute, seal } from "./requests.ts";

const OWN = 0x70_00_00_11;
const first = sessionFence(() => undefined);
const within = sessionFence(() => OWN);
const created = (): Buffer => seal(createSession(), 1, 0);

describe("the fence around our own session object", () => {
  it("lets the session be created once, before there is one", () => {
    expect(first(created())).toBe(true);
    expect(within(created())).toContain("something other than our own session");
  });

  it("lets no other object be created: a byte of its body is another", () => {
    for (let at = 0; at < CREATE_SESSION_BODY.length; at++) {
      const frame = created();
      const place = frame.indexOf(CREATE_SESSION_BODY) + at;
      frame.writeUInt8(frame.readUInt8(place) ^ 0x40, place);
      expect(first(frame), `byte ${at}`).not.toBe(true);
    }
  });

  it("lets our own session be deleted, and no other object", () => {
    expect(within(seal(deleteSession(OWN), 2, 1))).toBe(true);
    expect(within(seal(deleteSession(OWN + 1), 2, 1))).not.toBe(true);
    expect(first(seal(deleteSession(OWN), 2, 1))).not.toBe(true);
  });

  it("lets attributes of our own session be read", () => {
    expect(within(seal(getAttribute(OWN, 300), 2, 1))).toBe(true);
    expect(first(seal(getAttribute(OWN, 300), 2, 1))).not.toBe(true);
  });
});
