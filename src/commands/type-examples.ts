import type { ExampleVerb, TypeFacts } from "../../drivers/facts.ts";
import { DRIVERS } from "../../drivers/index.ts";

/** Lines for the help of a verb, from each type that has some. */
export const typeExamples = (verb: ExampleVerb): readonly string[] =>
  Object.values<TypeFacts>(DRIVERS).flatMap(({ examples }) => examples[verb] ?? []);
