import type { Request } from "../../../drivers/driver.ts";
import type { Group, LearnedGroups } from "../learned-groups.ts";

/** A device that refused so many requests of which each part is well by itself, and none that is shorter, takes shorter ones. */
const REFUSED_BLOCKS = 2;

/**
 * A cut was found where every part is well by itself. Where the device has refused more than one request so and answered none that is as long,
 * shorter ones are asked for from now on: each would take a search of its own. `isGood`: the request had values in this readout.
 */
export function learnBlocks(learned: LearnedGroups, isGood: (request: Request) => boolean): void {
  const { driver, groups, known } = learned;
  const { cuts } = known;
  if (!driver?.answerBytes || cuts.size < REFUSED_BLOCKS) return;
  const bytesOf = (request: Request): number => driver.answerBytes?.(request) ?? 0;
  const parts = new Set(groups.map(({ fresh }) => fresh.part));
  for (const part of parts) {
    const own = groups.filter(({ fresh }) => fresh.part === part);
    const cutIn = ({ fresh }: Group): number => fresh.points.filter((point) => cuts.has(point)).length;
    const refused = own.filter((group) => cutIn(group) > 0);
    const good = own.flatMap(({ requests }) => requests.flatMap(({ request }) => (isGood(request) ? bytesOf(request) : [])));
    const leastRefused = Math.min(...refused.map(({ fresh }) => bytesOf(fresh)));
    const mostGood = Math.max(0, ...good);
    const times = refused.reduce((sum, group) => sum + cutIn(group), 0);
    const isLength = times >= REFUSED_BLOCKS && mostGood > 0 && mostGood < leastRefused;
    if (isLength) known.habits.push({ name: "small_blocks", part, value: mostGood });
  }
}
