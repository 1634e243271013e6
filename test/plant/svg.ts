import { stripVTControlCharacters } from "node:util";

/** Size of a character and of a line, of the margin and of the window's bar, in pixels. */
const [CHARACTER, LINE, MARGIN, BAR] = [8.43, 18, 16, 48];
const TEXT = "#d7dae0";
/** What each code of styleText() that the picture uses looks like; what ends a style has none. */
const STYLES: Readonly<Record<string, string>> = {
  "1": `fill="${TEXT}" font-weight="bold"`,
  "2": `fill="${TEXT}" opacity=".6"`,
  "31": 'fill="#ff6b6b"',
  "32": 'fill="#5fd38d"',
  "33": 'fill="#f2c94c"',
  "35": 'fill="#d183e8"',
  "36": 'fill="#56d4dd"',
};

/** Lines of text with the escape sequences of styleText(), of `columns` characters at most, as a picture of a terminal. */
export function svgOf(lines: readonly string[], columns: number): string {
  const width = Math.ceil(columns * CHARACTER + 2 * MARGIN);
  const height = BAR + lines.length * LINE;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="14">
<title>The demo of the collector in a terminal</title>
<rect width="100%" height="100%" rx="8" fill="#1b1e24"/>
<circle cx="18" cy="16" r="5" fill="#ff5f56"/><circle cx="36" cy="16" r="5" fill="#ffbd2e"/><circle cx="54" cy="16" r="5" fill="#27c93f"/>
${lines.flatMap((line, n) => textsOf(line, BAR + n * LINE)).join("\n")}
</svg>
`;
}

function textsOf(line: string, y: number): readonly string[] {
  const texts: string[] = [];
  let column = 0;
  let style = `fill="${TEXT}"`;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: it is what the escape sequences begin with
  for (const [, code, piece = ""] of `\x1b[0m${line}`.matchAll(/\x1b\[(\d+)m([^\x1b]*)/g)) {
    style = STYLES[code ?? ""] ?? `fill="${TEXT}"`;
    const text = stripVTControlCharacters(piece);
    const shown = text.trim();
    const x = (MARGIN + (column + text.length - text.trimStart().length) * CHARACTER).toFixed(1);
    const length = (shown.length * CHARACTER).toFixed(1);
    if (shown !== "") texts.push(`<text x="${x}" y="${y}" ${style} textLength="${length}" xml:space="preserve">${escaped(shown)}</text>`);
    column += text.length;
  }
  return texts;
}

const escaped = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
