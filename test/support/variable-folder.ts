import { mkdtempSync, renameSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SourceName } from "../../src/configuration/match-files.ts";
import { type VariableFiles, VariableFolder } from "../../src/configuration/variable-files.ts";

/** A folder of variable files, and another one for what is kept of them, with a clock that looks move. */
export class FolderRig {
  readonly state = mkdtempSync(join(tmpdir(), "collector-kept-"));
  readonly folder = mkdtempSync(join(tmpdir(), "collector-variables-"));
  nowMs = 0;
  epochMs: () => number = () => Date.now();
  files = this.#open();

  /** The files of the folder as a new process sees them. */
  restart(): void {
    this.files = this.#open();
  }

  #open(): VariableFolder {
    const clock = { monotonicMs: () => this.nowMs, epochMs: () => this.epochMs() };
    return new VariableFolder(this.folder, clock, join(this.state, "variable-files.json"));
  }

  write(name: string, text: string | Uint8Array): string {
    writeFileSync(join(this.folder, name), text);
    return join(this.folder, name);
  }

  /** What was written long before the looks began. */
  writeOld(name: string, text: string): void {
    utimesSync(this.write(name, text), 1, 1);
  }

  rename(from: string, to: string): void {
    renameSync(join(this.folder, from), join(this.folder, to));
  }

  remove(name: string): void {
    rmSync(join(this.folder, name));
  }

  /** As the service looks, every two seconds, until what was written is taken and what was removed is gone. */
  async look(sources: readonly SourceName[]): Promise<VariableFiles> {
    await this.files.look(sources);
    this.nowMs += 2000;
    return this.files.look(sources);
  }

  close(): void {
    rmSync(this.folder, { recursive: true });
    rmSync(this.state, { recursive: true });
  }
}

export const addressesOf = (found: VariableFiles, { uuid }: { readonly uuid: string }): readonly string[] | undefined =>
  found.bySource.get(uuid)?.variables.map(({ address }) => address);

export const messagesOf = (found: VariableFiles, { uuid }: { readonly uuid: string }): readonly string[] =>
  found.problems.flatMap(({ source, message }) => (source === uuid ? [message] : []));
