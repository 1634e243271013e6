/** How the collector starts another process: with a bound of its own, and closed to debuggers as the collector itself is. */
export interface Launch {
  /** Of the process, for lists of processes. */
  readonly name: string;
  /** Data segments that the kernel grants it, KiB: since Linux 4.7 all private memory that can be written (getrlimit(2)). */
  readonly memoryKiB: number;
  readonly command: readonly string[];
  /** Without one word of an environment. A shell exports words of its own, which `env` takes away. */
  readonly isBare?: boolean;
}

/** Node opens a debugger on this signal otherwise, and through that a process can be made to do anything. bin/runtime-flags.sh has it too. */
const CLOSED = "--disable-sigusr1";
/**
 * A shell sets the limits, since Node cannot. A core dump would hold secrets. Where memory is short, the kernel ends this process before the
 * one that started it; the shell itself becomes that process, so that a subshell would set nothing of it.
 */
const LAUNCHER = 'ulimit -d "$1"; ulimit -c 0; { echo 1000 >/proc/self/oom_score_adj; } 2>/dev/null; shift; exec "$@"';

/** What `spawn` takes. Pure. */
export function launchWords({ name, memoryKiB, command, isBare = false }: Launch): readonly [program: string, words: string[]] {
  const bare = isBare ? ["/usr/bin/env", "-i"] : [];
  return ["/bin/sh", ["-c", LAUNCHER, `collector-${name}`, String(memoryKiB), ...bare, ...closedToDebuggers(command)]];
}

/** A command whose program is the collector's own Node gets its flag; another program may be of a version that does not know it. */
export const closedToDebuggers = ([program = "", ...words]: readonly string[]): readonly string[] =>
  program === process.execPath ? [program, CLOSED, ...words] : [program, ...words];
