/** The broker's answer to CONNECT allows that it speaks another version only. `cause` is what the connection failed for. */
export class OtherVersionError extends Error {
  /** False: it closed without a word, as anything on the way may do. */
  readonly saysSo: boolean;
  constructor(message: string, saysSo: boolean, options?: ErrorOptions) {
    super(message, options);
    this.saysSo = saysSo;
  }
}

interface Closable {
  close(): Promise<void>;
}

/** Key of what is remembered of a broker over its openings. */
const VERSION = "version";
const ANSWERS_5 = "answers 5";
const CLOSES_ON_5 = "closes on 5, answers 3.1.1";
/** Closes on MQTT 5, before 3.1.1 is tried, to distinguish a broker of that version from a connection that breaks. */
const CLOSES = 3;
/** So often 3.1.1 has to be answered then, and 5 closed on once more: a way on which connections break now and then does that by chance once. */
const ROUNDS = 4;
/** Key of how often that was so, by openings that did not come to an end too: a slow way may have no time for all of them at once. */
const SEEN = "closed on 5 after an answer to 3.1.1";

/**
 * Connects with MQTT 5; with 3.1.1 where the broker says that it does not speak 5, or closes on it each time while it answers 3.1.1 between.
 * Under 3.1.1 a broker cannot refuse a publish, so what is denied would count as delivered: a broken connection is not enough for it, and
 * a broker that has once answered 5 has to say so. `attempt` throws OtherVersionError, or what it failed for otherwise.
 */
export async function chooseVersion<C extends Closable>(
  attempt: (version: 4 | 5) => Promise<C>,
  remembered: Map<string, string>,
): Promise<C> {
  /** With 5, or why not. */
  const tryFive = async (): Promise<C | OtherVersionError> => {
    try {
      const connection = await attempt(5);
      remembered.set(VERSION, ANSWERS_5);
      return connection;
    } catch (error) {
      if (error instanceof OtherVersionError) return error;
      throw error;
    }
  };
  for (let closes = 1; ; closes++) {
    const five = await tryFive();
    if (!(five instanceof OtherVersionError)) return five;
    if (five.saysSo || remembered.get(VERSION) === CLOSES_ON_5) return await attempt(4);
    if (remembered.get(VERSION) === ANSWERS_5) throw five.cause;
    if (closes >= CLOSES) break;
  }
  for (let seen = Number(remembered.get(SEEN) ?? 0); seen < ROUNDS; ) {
    const four = await attempt(4);
    await four.close();
    const five = await tryFive();
    if (!(five instanceof OtherVersionError)) return five;
    if (five.saysSo) return await attempt(4);
    remembered.set(SEEN, String(++seen));
  }
  remembered.set(VERSION, CLOSES_ON_5);
  return await attempt(4);
}
