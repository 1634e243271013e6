import { randomBytes, scrypt, timingSafeEqual } from "node:crypto";
import { type Attempt, createLockout } from "./lockout.ts";

interface Hashed {
  readonly salt: Buffer;
  readonly hash: Buffer;
}

export interface User {
  readonly username: string;
  readonly password: string;
}

export interface Users {
  /** True: a client may log in. Never throws; the password is neither kept nor shown. */
  check(attempt: Attempt, password: string): Promise<boolean>;
  /** For how many ms no password of this user from this address is looked at; 0: it is. */
  lockedForMs(attempt: Attempt): number;
  /** Passwords that were evaluated, for tests and figures. */
  readonly evaluated: number;
}

export interface UsersOptions {
  /** Monotonic, ms. */
  readonly nowMs?: () => number;
}

/** Interactive strength (RFC 7914, 2): 16 MiB and some 50 ms on a small machine. */
const COST = { N: 2 ** 14, r: 8, p: 1, maxmem: 64 * 2 ** 20 } as const;
const HASH_BYTES = 32;
/** Longer ones are wrong without being evaluated; the API's names and passwords are typed by people. */
const MAX_LENGTH = 1024;
/** Evaluations that wait for their turn: one at a time, so that none slips past the count of those before it. */
const MAX_WAITING = 100;

/** Keeps the users as scrypt hashes. A name that nobody has costs what a wrong password costs. */
export async function hashUsers(users: readonly User[], { nowMs = () => performance.now() }: UsersOptions = {}): Promise<Users> {
  const lockout = createLockout();
  const byName = new Map<string, Hashed>();
  for (const { username, password } of users) byName.set(username, await hashOf(password));
  const nobody = await hashOf(randomBytes(HASH_BYTES).toString("hex"));
  let evaluated = 0;
  let waiting = 0;
  let turn: Promise<unknown> = Promise.resolve();

  const evaluate = async (attempt: Attempt, password: string): Promise<boolean> => {
    if (!lockout.isOpen(attempt, nowMs())) return false;
    evaluated++;
    const known = byName.get(attempt.user);
    const { salt, hash } = known ?? nobody;
    let isRight = false;
    try {
      isRight = timingSafeEqual(await derive(password, salt), hash) && known !== undefined;
    } finally {
      if (!isRight) lockout.failed(attempt, nowMs());
    }
    return isRight;
  };

  return {
    async check(attempt, password) {
      if (attempt.user.length > MAX_LENGTH || password.length > MAX_LENGTH || waiting >= MAX_WAITING) return false;
      if (!lockout.isOpen(attempt, nowMs())) return false;
      waiting++;
      const mine = turn.then(() => evaluate(attempt, password)).catch(() => false);
      turn = mine;
      try {
        return await mine;
      } finally {
        waiting--;
      }
    },
    lockedForMs: (attempt) => Math.max(0, lockout.closedUntilMs(attempt, nowMs()) - nowMs()),
    get evaluated() {
      return evaluated;
    },
  };
}

async function hashOf(password: string): Promise<Hashed> {
  const salt = randomBytes(16);
  return { salt, hash: await derive(password, salt) };
}

function derive(password: string, salt: Buffer): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    scrypt(password, salt, HASH_BYTES, COST, (error, hash) => (error ? reject(error) : resolve(hash)));
  });
}
