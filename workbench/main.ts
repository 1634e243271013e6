import manifest from "../package.json" with { type: "json" };
import type { CaptureProblem, CaptureRead, ReplayableDevice, Workbench } from "../src/model/workbench.ts";
import { CaptureError } from "./capture/packets.ts";
import { factsWords, readCapture } from "./capture/read.ts";
import { ReplayDevice } from "./replay/device.ts";
import { DeviceMemory } from "./replay/memory.ts";
import { REPLAY_TYPES } from "./replay/protocols.ts";
import { type RecordedDevice, Recording } from "./replay/recording.ts";

/** The module that `collector replay` and `collector profile replay` load: reading of captures, and devices that are played from them. */

/** A damaged file as data: the collector has another class of the same name. */
async function read(...words: Parameters<typeof readCapture>): Promise<CaptureRead | CaptureProblem> {
  try {
    const facts = await readCapture(...words);
    return { facts, notes: factsWords(facts) };
  } catch (error) {
    if (error instanceof CaptureError) return { problem: error.message };
    throw error;
  }
}

/** True: reads of the recording are a memory of a protocol whose other messages cannot be served. */
function isMemory({ protocol, script }: RecordedDevice): boolean {
  const { memory, refusal } = protocol;
  return memory !== undefined && refusal !== undefined && new DeviceMemory(memory, script.asked()).facts.ranges > 0;
}

function replayable(device: RecordedDevice): ReplayableDevice {
  const { end, transport, protocol, script, counts } = device;
  return {
    end,
    transport,
    type: protocol.type,
    protocol: protocol.words,
    refusal: isMemory(device) ? undefined : protocol.refusal,
    counts,
    differentRequests: script.size,
    serve: (options) => ReplayDevice.start({ device, ...options }),
  };
}

export const workbench: Workbench = {
  version: manifest.version,
  replayTypes: REPLAY_TYPES,
  readCapture: read,
  async readRecording(source, wish, options) {
    const recording = new Recording(wish);
    const got = await read(source, (pieces) => recording.add(pieces), options);
    if ("problem" in got) return got;
    recording.end();
    return { ...got, devices: recording.devices.map(replayable), notKept: recording.room.notKept };
  },
};
