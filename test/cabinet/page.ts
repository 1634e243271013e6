import { barriersOf, overflowsOf, tabTo } from "../support/chromium/checks.ts";
import { layoutFlawsOf } from "../support/chromium/layout.ts";
import type { Visit } from "../support/chromium/visit.ts";
import type { CabinetFault } from "./faults.ts";
import { comparable, headerOf, partOf, sentencesIn, troubleIn } from "./printed.ts";

/** Parts of a data source's page, by their ids. */
export const SECTIONS = ["state", "variables", "faults", "plan", "timeline"];

/** The place where the page has what is said of a data source, a data sink or the service. */
const placeOf = (on: string | null): string =>
  on === null ? "#alarms, #configuration" : `main [data-source="${on}"], main [data-sink="${on}"]`;

/** What the status says of each fault and the page as it looks now does not say: its sentences, its state and its next step. */
export async function unsaidOf(
  visit: Visit,
  faults: readonly CabinetFault[],
  status: string,
  settingsFile: string,
): Promise<readonly string[]> {
  // The status is as the tools print it, which name the settings themselves.
  const plain = (text: string): string => text.replaceAll(` -c ${settingsFile}`, "");
  const unsaid: string[] = [];
  for (const { fault, on, state, command } of faults) {
    const place = placeOf(on);
    const text = comparable(plain(await visit.text(place)));
    const sentences = sentencesIn(on === null ? troubleIn(headerOf(status)) : partOf(status, on));
    if (sentences.length === 0) unsaid.push(`${fault}: the status itself says nothing of it`);
    for (const sentence of [...sentences, ...(state === null ? [] : [state])])
      if (!text.includes(sentence)) unsaid.push(`${fault}: ${sentence}\n  in: ${text}`);
    const commands = await visit.page.locator(place).locator("code:visible").allInnerTexts();
    if (commands.some((one) => /collector [a-z]/.test(one) && !one.includes(` -c ${settingsFile}`)))
      unsaid.push(`${fault}: a command does not name the settings: ${commands.join(", ")}`);
    if (!commands.some((one) => command.test(plain(one)))) unsaid.push(`${fault}: ${command} in: ${commands.join(", ")}`);
  }
  return unsaid;
}

/** Faults that the overview does not lead to: none of its needs names the source or sink of the fault, with its state. */
export async function unnamedOf(visit: Visit, faults: readonly CabinetFault[]): Promise<readonly string[]> {
  const needs = await visit.page.locator("#needs [data-need]").evaluateAll((all) =>
    all.map((need) => ({
      names: [...(need as unknown as { querySelectorAll(what: string): { textContent: string }[] }).querySelectorAll("a")].map(
        ({ textContent }) => textContent,
      ),
      text: (need as unknown as { innerText: string }).innerText,
    })),
  );
  return faults.flatMap(({ fault, on, state }) => {
    if (on === null) return [];
    const found = needs.filter(({ names }) => names.includes(on));
    const isNamed =
      found.length > 0 && (state === null || state === "OK" || state === "NO_VARIABLES" || found.some(({ text }) => text.includes(state)));
    return isNamed ? [] : [`${fault}: ${on} ${state} in: ${found.map(({ text }) => text).join(" | ")}`];
  });
}

/** All that is wrong with the page as it looks now, whatever it says. */
export const flawsOf = async (visit: Visit): Promise<readonly string[]> => [
  ...visit.complaints,
  ...(await overflowsOf(visit)),
  ...(await layoutFlawsOf(visit)),
  ...(await barriersOf(visit)),
];

/** Comes to links with the key Tab. Throws where no Tab comes to one, or where the person does not see on the way where the keyboard is. */
export async function reach(visit: Visit, links: readonly string[]): Promise<void> {
  const left = new Set(links);
  const stops = await tabTo(visit, ({ tag, text }) => {
    if (tag === "a") left.delete(text);
    return left.size === 0;
  });
  const unseen = stops.filter(({ isVisible }) => !isVisible);
  if (unseen.length > 0) throw new Error(`the keyboard cannot be seen on ${unseen.map(({ tag, text }) => `${tag} ${text}`).join(", ")}`);
}

/** Goes along the link that the keyboard is on. */
export async function enter(visit: Visit, to: string): Promise<void> {
  await visit.press("Enter");
  await visit.page.waitForURL(to);
}

/** Puts the keyboard on the first link with a text, which Tab is known to reach. */
export const focusOn = (visit: Visit, link: string): Promise<void> =>
  visit.page.getByRole("link", { name: link, exact: true }).first().focus();
