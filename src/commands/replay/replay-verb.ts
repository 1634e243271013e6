import type { Verb } from "../verb.ts";
import type { ReplayVerbOptions } from "./replay.ts";

/** `collector replay`. */
export const REPLAY: Verb = {
  usage: "replay <capture>",
  description: "Serve the answers of a recorded device: what it answered in a capture (pcap or pcapng), it answers again.",
  args: { capture: "recording of collector capture, tcpdump or Wireshark; -: stdin" },
  examples: [
    "collector replay press-1.pcapng",
    "collector replay hall.pcap --device 10.0.0.5:502 --listen 127.0.0.1:1502",
    "collector replay filler.pcap --device 10.0.0.9:9600/udp",
    "collector read modbus_tcp host=127.0.0.1 port=1502 holding:0:uint16     in another terminal",
    "tcpdump -r hall.pcap -w - host 10.0.0.5 | collector replay - --device 10.0.0.5",
    "collector replay scale.pcapng --type bytes --json",
  ],
  json: "print one JSON object per line: where it listens, how much memory the capture tells, each request that is not known, the summary",
  options: [
    {
      flags: "-l, --listen <address:port>",
      description: "where it listens (default: 127.0.0.1 and the device's port; 1000 more, below 1024)",
    },
    {
      flags: "-d, --device <address[:port][/udp]>",
      description: "the device that is meant, where the capture has several; /tcp or /udp where it has both",
    },
    {
      flags: "-t, --type <type>",
      description:
        "what the device speaks (default: by its bytes and its port): modbus_tcp, s7, fins, vendor_a, opcua, vendor_gateway; bytes: any other",
    },
  ],
  notes: `A request is the same as in the capture if its bytes are, but for what each protocol changes by itself (transaction, reference, session and
sequence numbers), which the answer gets. Where it was answered differently over time, the answers come in their order, then the last one
again. Of Modbus (RTU too), S7, FINS, tags of EtherNet/IP and values of OPC UA without security, what the capture reads is a memory: any part of
it is served, in any grouping and order. A value is the first one captured until the same is read again, then the next one. What was never captured, and every write, is refused
as the protocol refuses it. What the capture has no answer for is printed with the request that is nearest. Of a protocol that is not known, a
request that differs is answered by its place in the capture if it is as long. s7plus and what is signed or encrypted cannot be replayed.
It listens and answers; it connects to nothing. Beside loopback it listens where listen in policy.yaml opens an address. Ctrl-C ends it.
The package collector-workbench reads captures (sudo apt install ./collector-workbench_*.deb), and so does a checkout; the collector's own
package only writes them.`,
  run: async (io, capture: string, options: ReplayVerbOptions) => (await import("./replay.ts")).replay(io, capture, options),
};
