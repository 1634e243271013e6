/** A value that Telegraf takes from the environment or a secret store: `${NAME}`, `$NAME`, `@{store:key}`. Pure. */
export const hasEnvironment = (...texts: readonly string[]): boolean => texts.some((text) => /\$\{|\$[A-Z_][A-Z0-9_]*\b|@\{/.test(text));

export const IN_ENVIRONMENT = "a part of it comes from the environment or a secret store, and is not in the file";

/** The name of a variable: the measurement, where the file names one, and the field. Pure. */
export const joined = (measurement: string, field: string): string => (measurement === "" ? field : `${measurement}.${field}`);
