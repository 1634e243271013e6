// Misbehaving device host for netlab: TCP ports with one fault each, UDP echo, and a small DNS server.
// Usage: node faultdev.mjs ADDR4 [ADDR6] [ALLOWED_CLIENT_HINT] ; prints "ready" when everything listens.

import dgram from "node:dgram";
import net from "node:net";

const [a4, a6] = process.argv.slice(2);
const swallow = (s) => s.on("error", () => {});
export const TCP = {
  5001: ["echo", (s) => s.on("data", (d) => s.write(d))],
  5002: [
    "half answer then RST",
    (s) =>
      s.on("data", (d) => {
        s.write(d.subarray(0, Math.ceil(d.length / 2)));
        setTimeout(() => s.resetAndDestroy(), 100);
      }),
  ],
  5003: [
    "half answer then FIN",
    (s) =>
      s.on("data", (d) => {
        s.write(d.subarray(0, Math.ceil(d.length / 2)));
        setTimeout(() => s.end(), 100);
      }),
  ],
  5004: ["accepts, reads, never answers", (s) => s.resume()],
  5005: ["RST straight after accept", (s) => s.resetAndDestroy()],
  5006: [
    "FIN straight after accept",
    (s) => {
      s.resume();
      s.end();
    },
  ],
  5007: [
    "slow loris: echoes one byte per second",
    (s) => {
      const q = [];
      s.on("data", (d) => q.push(...d));
      const t = setInterval(() => {
        if (q.length) s.write(Buffer.from([q.shift()]));
      }, 1000);
      s.on("close", () => clearInterval(t));
    },
  ],
  5008: ["accepts, never reads (zero window)", (s) => s.pause()],
  5009: ["answers every request with 64 random bytes", (s) => s.on("data", () => s.write(rnd(64)))],
  5010: [
    "answers every request with an HTTP 400",
    (s) => s.on("data", () => s.end("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")),
  ],
  5011: [
    "endless stream of garbage",
    (s) => {
      s.resume();
      const go = () => {
        while (!s.destroyed && s.write(rnd(16384)));
      };
      s.on("drain", go);
      go();
    },
  ],
  5012: ["answers after 3 s", (s) => s.on("data", (d) => setTimeout(() => s.destroyed || s.write(d), 3000))],
  5013: [
    "answers every request twice (stale duplicate)",
    (s) =>
      s.on("data", (d) => {
        s.write(d);
        setTimeout(() => s.destroyed || s.write(d), 50);
      }),
  ],
  5015: [
    "answers once, then closes completely (FIN now, RST on the next write)",
    (s) =>
      s.once("data", (d) => {
        s.write(d);
        setTimeout(() => s.destroy(), 50);
      }),
  ],
  5014: [
    "one-byte TCP segments, fast",
    (s) => {
      s.setNoDelay(true);
      s.on("data", async (d) => {
        for (const b of d) {
          if (s.destroyed) return;
          s.write(Buffer.from([b]));
          await new Promise((r) => setTimeout(r, 1));
        }
      });
    },
  ],
};
let seed = 1;
const rnd = (n) => {
  const b = Buffer.alloc(n);
  for (let i = 0; i < n; i++) {
    seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
    b[i] = seed >>> 16;
  }
  return b;
};
const waits = [];
for (const [port, [, fn]] of Object.entries(TCP))
  for (const host of [a4 ? "0.0.0.0" : null, a6 ? "::" : null].filter(Boolean)) {
    const srv = net.createServer({ allowHalfOpen: false }, (s) => {
      swallow(s);
      fn(s);
    });
    waits.push(
      new Promise((r) => {
        srv.on("error", (e) => {
          console.error(port, host, e.code);
          r();
        });
        srv.listen({ port: +port, host, ipv6Only: host === "::" }, r);
      }),
    );
  }
const u = dgram.createSocket("udp4");
u.on("message", (m, r) => u.send(m, r.port, r.address));
u.on("error", () => {});
waits.push(new Promise((r) => u.bind(5001, "0.0.0.0", r)));

// DNS: the name says what happens.
const A = {
  "dev.lab": { 1: [a4] },
  "v6.lab": { 28: [a6] },
  "dual.lab": { 1: [a4], 28: [a6] },
  "multi.lab": { 1: [a4, "10.99.2.3", "10.99.2.4"] },
  "ghost.lab": { 1: ["10.99.2.77"] },
  "halfghost.lab": { 1: ["10.99.2.77", a4] },
  "slow.lab": { 1: [a4] },
};
const RCODE = { "nx.lab": 3, "servfail.lab": 2, "refused.lab": 5, "formerr.lab": 1, "notimp.lab": 4 };
const ip6 = (s) => {
  const [h, t = ""] = s.split("::");
  const H = h ? h.split(":") : [],
    T = t ? t.split(":") : [];
  const all = [...H, ...Array(8 - H.length - T.length).fill("0"), ...T];
  const b = Buffer.alloc(16);
  for (const [i, x] of all.entries()) b.writeUInt16BE(parseInt(x, 16), i * 2);
  return b;
};
const dns = dgram.createSocket("udp4");
dns.on("error", () => {});
dns.on("message", (q, r) => {
  if (q.length < 17) return;
  let o = 12;
  const labels = [];
  while (o < q.length && q[o]) {
    labels.push(q.toString("latin1", o + 1, o + 1 + q[o]));
    o += q[o] + 1;
  }
  const end = o + 5;
  if (end > q.length) return;
  const type = q.readUInt16BE(o + 1);
  const name = labels.join(".").toLowerCase();
  if (name === "never.lab") return;
  let rcode = RCODE[name] ?? 0,
    ans = [];
  if (!rcode) {
    if (A[name]) ans = A[name][type] ?? [];
    else if (name !== "nodata.lab") rcode = 3;
  }
  const head = Buffer.from(q.subarray(0, 12));
  head.writeUInt16BE(0x8180 | rcode, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(ans.length, 6);
  head.writeUInt32BE(0, 8);
  const rr = ans.map((x) => {
    const d = type === 1 ? Buffer.from(x.split(".").map(Number)) : ip6(x);
    const h = Buffer.alloc(12);
    h.writeUInt16BE(0xc00c, 0);
    h.writeUInt16BE(type, 2);
    h.writeUInt16BE(1, 4);
    h.writeUInt32BE(5, 6);
    h.writeUInt16BE(d.length, 10);
    return Buffer.concat([h, d]);
  });
  const out = name === "garbage.lab" ? Buffer.concat([q.subarray(0, 2), rnd(40)]) : Buffer.concat([head, q.subarray(12, end), ...rr]);
  setTimeout(() => dns.send(out, r.port, r.address, () => {}), name === "slow.lab" ? 3000 : 0);
});
waits.push(new Promise((r) => dns.bind(53, a4 ?? "0.0.0.0", r)));
await Promise.all(waits);
console.log("ready");
