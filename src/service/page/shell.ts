import { type Html, html, withAges } from "./html.ts";

/** A page without scripts. Ages are not filled in. */
export interface Page {
  readonly title: string;
  readonly main: Html;
}

export interface ShellOptions {
  readonly page: Page;
  /** True: the console takes over where scripts run; elsewhere the page loads itself again. */
  readonly isLive: boolean;
  /** True: somebody has logged in, and may log out. */
  readonly isLoggedIn: boolean;
  readonly nowMs: number;
}

/** A page without scripts loads itself again after so long. */
const AGAIN_S = 10;

/** The document around a page. Pure. */
export function shell({ page, isLive, isLoggedIn, nowMs }: ShellOptions): string {
  const text = html`<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${page.title}</title>
<link rel="icon" href="/assets/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/assets/console.css">
${
  isLive &&
  html`<script type="module" src="/assets/console.js"></script>
<noscript><meta http-equiv="refresh" content="${AGAIN_S}"></noscript>`
}
</head>
<body${isLoggedIn && html` data-logged-in`}>
<div id="console">
<a class="skip" href="#main">Skip to the content</a>
<header class="bar">
<nav aria-label="Pages"><a class="brand" href="/">Collector</a>${isLive && html` <a href="/#sinks">Data sinks</a> <a href="/#configuration">Configuration</a>`}</nav>
${isLive && html`<p class="live">${new Date(nowMs).toISOString().slice(11, 19)} UTC</p>`}
${isLoggedIn && html`<form method="post" action="/logout"><button type="submit">Log out</button></form>`}
</header>
<main id="main" tabindex="-1">
${page.main}
</main>
</div>
</body>
</html>
`.text;
  return `<!doctype html>\n${withAges(text, nowMs)}`;
}
