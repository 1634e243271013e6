/** Variables of one tag, or of one member of a data block, at most: nobody picks those of more structures from a list. */
export const MAX_OF_TAG = 10_000;

/** The problem of a tag with more values; endless: its types contain themselves. */
export const tooMany = (count: number): string =>
  Number.isFinite(count)
    ? `it has ${count} values, more than ${MAX_OF_TAG}: add those that are needed with collector variables add`
    : "its types contain themselves, or lie in each other too deep";
