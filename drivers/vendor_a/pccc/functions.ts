/** Commands and functions of PCCC that read. Rockwell 1770-6.5.16, 7-1; 1770-KF2, 5-57. */
export const FILES = {
  command: 0x0f,
  diagnostic: 0x06,
  diagnosticStatus: 0x03,
  wordRangeRead: 0x01,
  typedRead: 0x68,
  directoryRead: 0xa1,
  logicalRead: 0xa2,
} as const;

export const FUNCTION_WORDS: ReadonlyMap<number, string> = new Map([
  [(FILES.command << 8) | FILES.wordRangeRead, "word range read"],
  [(FILES.command << 8) | FILES.typedRead, "typed read"],
  [(FILES.command << 8) | FILES.directoryRead, "read of the file directory"],
  [(FILES.command << 8) | FILES.logicalRead, "protected typed logical read"],
  [(FILES.diagnostic << 8) | FILES.diagnosticStatus, "diagnostic status"],
]);
