/**
 * Which bytes a driver may send, decoded a second time and apart from the drivers' own fences: one entry per type in the
 * registry. Takes all bytes of one connection; gives what is not a request that reads, in words.
 */
export const ALLOWED: Readonly<Record<string, (sent: Buffer) => string[]>> = {
  // MODBUS Application Protocol V1.1b3, 6.1 to 6.4: function, start, count. Nothing else reads without a side effect.
  modbus_tcp(sent) {
    const wrong: string[] = [];
    let at = 0;
    while (at < sent.length) {
      if (sent.length - at < 12) return [...wrong, `${sent.length - at} bytes at ${at} are no whole request`];
      const [protocol, length, code, count] = [
        sent.readUInt16BE(at + 2),
        sent.readUInt16BE(at + 4),
        sent.readUInt8(at + 7),
        sent.readUInt16BE(at + 10),
      ];
      if (protocol !== 0 || length !== 6) return [...wrong, `protocol ${protocol} and length ${length} at ${at}`];
      if (![1, 2, 3, 4].includes(code)) wrong.push(`function ${code} at ${at}`);
      if (count < 1 || count > (code <= 2 ? 2000 : 125)) wrong.push(`count ${count} of function ${code} at ${at}`);
      at += 6 + length;
    }
    return wrong;
  },
};
