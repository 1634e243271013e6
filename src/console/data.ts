import { useEffect, useState } from "preact/hooks";

/** An answer of the collector's JSON, or why there is none. */
export type Answer<Told> = { readonly told: Told } | { readonly problem: string } | undefined;

/** Asks a path of `/data/`, and again each `everyMs`; null: nothing is asked. The answer of before stays until the next. */
export function useData<Told>(path: string | null, everyMs: number): Answer<Told> {
  const [answer, setAnswer] = useState<{ readonly path: string; readonly answer: Answer<Told> }>();
  useEffect(() => {
    if (path === null) return;
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const ask = async (): Promise<void> => {
      const next = await fetchData<Told>(path, stop.signal);
      if (stop.signal.aborted) return;
      setAnswer({ path, answer: next });
      timer = setTimeout(() => void ask(), everyMs);
    };
    void ask();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [path, everyMs]);
  return answer?.path === path ? answer.answer : undefined;
}

/** A connection that is dead without saying so ends here. */
const ANSWER_WITHIN_MS = 30_000;

/** Never rejects. */
export async function fetchData<Told>(path: string, signal: AbortSignal): Promise<Answer<Told>> {
  try {
    const response = await fetch(path, { signal: AbortSignal.any([signal, AbortSignal.timeout(ANSWER_WITHIN_MS)]) });
    const told = (await response.json()) as Told & { readonly detail?: string };
    return response.ok ? { told } : { problem: told.detail ?? `the collector answered ${response.status}` };
  } catch {
    return { problem: "the collector does not answer; trying again" };
  }
}
