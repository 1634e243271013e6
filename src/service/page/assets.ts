import { readFileSync } from "node:fs";
import { DURATION_MODULE } from "./html.ts";

/** Files that the pages need, from this machine alone. */
export interface Asset {
  readonly contentType: string;
  readonly body: string;
}

const FILES: Readonly<Record<string, string>> = {
  "page.css": "text/css; charset=utf-8",
  "page.js": "text/javascript; charset=utf-8",
  "icon.svg": "image/svg+xml",
};

/** By path. `folder`: where the files are. Throws where one is missing. */
export const loadAssets = (folder: URL): Readonly<Record<string, Asset>> => ({
  ...Object.fromEntries(
    Object.entries(FILES).map(([name, contentType]) => [
      `/assets/${name}`,
      { contentType, body: readFileSync(new URL(name, folder), "utf8") },
    ]),
  ),
  "/assets/duration.js": { contentType: "text/javascript; charset=utf-8", body: DURATION_MODULE },
});
