/**
 * What a FINS client may send, decoded apart from the driver's fence. FINS/TCP (Omron W421): a request for a node (command 0), then frames
 * (command 2); over UDP frames alone. Each frame reads memory (0101, 0104) or the model (0501 00). Gives what is not that, in words.
 */
export function wrongFins(sent: Buffer): string[] {
  if (sent.toString("latin1", 0, 4) !== "FINS") return wrongDatagrams(sent);
  const wrong: string[] = [];
  for (let at = 0; at < sent.length; ) {
    if (sent.length - at < 16 || sent.toString("latin1", at, at + 4) !== "FINS") return [...wrong, `no FINS/TCP header at ${at}`];
    const [length, command, error] = [sent.readUInt32BE(at + 4), sent.readUInt32BE(at + 8), sent.readUInt32BE(at + 12)];
    const body = sent.subarray(at + 16, at + 8 + length);
    if (length < 8 || at + 8 + length > sent.length) return [...wrong, `half a message at ${at}`];
    const what = error !== 0 ? [`error ${error}`] : at === 0 ? wrongNodeRequest(command, body) : wrongFrame(command, body);
    wrong.push(...what.map((text) => `${text} at ${at}`));
    at += 8 + length;
  }
  return wrong;
}

function wrongNodeRequest(command: number, body: Buffer): string[] {
  return command === 0 && body.length === 4 && body.readUInt32BE(0) < 255 ? [] : [`${command} ${body.toString("hex")} for a node`];
}

/** Words and flags of every area that has no side effect; single bits are not asked for. */
const AREAS = /^(80|81|82|01|09|89|b[0-3]|9[0-8]|a[0-9a-f]|6[0-8]|dc|bc)[0-9a-f]{4}00$/;

function wrongFrame(command: number, frame: Buffer): string[] {
  if (command !== 2 || frame.length < 12 || frame[0] !== 0x80 || frame[4] === 0xff) return [`FINS/TCP command ${command}`];
  const [code, parameters] = [frame.readUInt16BE(10), frame.toString("hex", 12)];
  if (code === 0x0501) return parameters === "00" ? [] : [`controller data ${parameters}`];
  if (code === 0x0101 && parameters.length === 12) {
    const count = Number.parseInt(parameters.slice(8), 16);
    return AREAS.test(parameters.slice(0, 8)) && count >= 1 && count <= 999 ? [] : [`the range ${parameters}`];
  }
  if (code !== 0x0104 || parameters.length % 8 !== 0) return [`FINS command ${code.toString(16)} ${parameters}`];
  const items = parameters.match(/.{8}/g) ?? [];
  return items.length >= 1 && items.length <= 167
    ? items.filter((item) => !AREAS.test(item)).map((item) => `the item ${item}`)
    : [`${items.length} items`];
}

/** Datagrams one behind the other: a multiple read ends where the next frame begins, because no item of a CS controller begins with 80. */
function wrongDatagrams(sent: Buffer): string[] {
  const wrong: string[] = [];
  for (let at = 0; at < sent.length; ) {
    if (sent.length - at < 12) return [...wrong, `half a frame at ${at}`];
    const code = sent.readUInt16BE(at + 10);
    let end = at + (code === 0x0101 ? 18 : code === 0x0501 ? 13 : 12);
    if (code === 0x0104) while (end < sent.length && sent[end] !== 0x80) end += 4;
    if (end > sent.length) return [...wrong, `half a frame at ${at}`];
    wrong.push(...wrongFrame(2, sent.subarray(at, end)).map((what) => `${what} at ${at}`));
    at = end;
  }
  return wrong;
}
