/** One block of code in a Markdown file. */
export interface ShellBlock {
  /** The heading that it stands below, without its marks. */
  readonly heading: string;
  readonly text: string;
}

/** The blocks of a Markdown text in one language, in their order, as they are printed. Default: what a shell runs. */
export function shellBlocks(markdown: string, language = "sh"): readonly ShellBlock[] {
  const blocks: ShellBlock[] = [];
  let heading = "";
  let fence: { readonly language: string; readonly lines: string[] } | undefined;
  for (const line of markdown.split("\n")) {
    if (fence) {
      if (line !== "```") fence.lines.push(line);
      else {
        if (fence.language === language) blocks.push({ heading, text: fence.lines.join("\n") });
        fence = undefined;
      }
    } else if (line.startsWith("```")) fence = { language: line.slice(3).trim(), lines: [] };
    else if (/^#+ /.test(line)) heading = line.replace(/^#+ /, "");
  }
  return blocks;
}
