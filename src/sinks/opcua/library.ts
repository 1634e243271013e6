import { StatusCode, setErrorLogger, setWarningLogger } from "node-opcua-client";
import { MonitoredItem, Subscription } from "node-opcua-server";
import { budgetLog } from "../../lib/log-budget.ts";
import { printedWords } from "../../lib/thread/printed.ts";
import type { Log } from "../../model/context.ts";
import { LIMITS } from "./limits.ts";

/** Lines that are passed on in a minute; what clients send decides how many there are. */
const LINES_PER_MINUTE = 60;

const ADJUST = "adjustSamplingInterval";
/** The function that was put in its place, so that it is done once. */
const BY_EXCEPTION = new WeakSet<object>();

interface Overflowing {
  value?: { statusCode: StatusCode };
}

/**
 * What of node-opcua 2.186.4 holds for a whole thread:
 * - it writes its warnings to the standard output, some with what a client sent;
 * - a queue of a monitored item that overflows with a value that is not Good throws out of the source's write, or of a timer;
 * - monitored items of any node are sampled every 50 ms if a client asks for it;
 * - the interval that clients read of a variable also decides how it is sampled (see `NodeMaker`).
 * Called at each opening; the log is that of the last one.
 */
export function fenceLibrary(log: Log): void {
  const budgeted = budgetLog(log, { linesPerMinute: LINES_PER_MINUTE, of: "node-opcua" });
  const pass = (_context: unknown, ...words: unknown[]): void => budgeted.debug({ words: printedWords(words) }, "node-opcua says");
  setErrorLogger(pass);
  setWarningLogger(pass);

  MonitoredItem.minimumSamplingInterval = LIMITS.samplingInterval;
  Subscription.minimumPublishingInterval = LIMITS.publishingInterval;
  Subscription.maxNotificationPerPublishHighLimit = LIMITS.notificationsPerPublish;
  const adjusted: unknown = Reflect.get(Subscription.prototype, ADJUST);
  if (typeof adjusted === "function" && !BY_EXCEPTION.has(adjusted)) {
    const value = function (this: unknown, samplingInterval: number, node?: { readonly minimumSamplingInterval?: number }): unknown {
      return samplingInterval === 0 && node?.minimumSamplingInterval === 0 ? 0 : adjusted.call(this, samplingInterval, node);
    };
    BY_EXCEPTION.add(value);
    Object.defineProperty(Subscription.prototype, ADJUST, { configurable: true, value });
  }
  Object.defineProperty(MonitoredItem.prototype, "_setOverflowBit", {
    configurable: true,
    value(this: { $subscription?: { subscriptionDiagnostics?: { monitoringQueueOverflowCount: number } } }, { value }: Overflowing) {
      if (value) value.statusCode = StatusCode.makeStatusCode(value.statusCode, "Overflow | InfoTypeDataValue");
      const diagnostics = this.$subscription?.subscriptionDiagnostics;
      if (diagnostics) diagnostics.monitoringQueueOverflowCount++;
    },
  });
}
