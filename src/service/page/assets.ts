import { readFileSync } from "node:fs";

/** Files that the pages need, from this machine alone. */
export interface Asset {
  readonly contentType: string;
  readonly body: string;
}

const FILES: Readonly<Record<string, string>> = {
  "console.css": "text/css; charset=utf-8",
  "console.js": "text/javascript; charset=utf-8",
  "icon.svg": "image/svg+xml",
};

/** By path. `folder`: where the files are, as the build made them. Throws where one is missing. */
export const loadAssets = (folder: URL): Readonly<Record<string, Asset>> =>
  Object.fromEntries(
    Object.entries(FILES).map(([name, contentType]) => [
      `/assets/${name}`,
      { contentType, body: readFileSync(new URL(name, folder), "utf8") },
    ]),
  );
