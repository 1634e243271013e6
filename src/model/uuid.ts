import * as z from "zod";
import "./words/issue-words.ts";

/**
 * A string of UUID format in either case, kept in lower case so that two spellings of one identifier compare equal (RFC 9562, 4).
 * Version and variant bits are not looked at: the API says "UUID format" and no more (API-V2, 2).
 */
export const uuidSchema = z.guid("expected a UUID such as 0d4ae1f6-6c4a-4f0e-9b66-0c3c6ad1f0a1").toLowerCase();
