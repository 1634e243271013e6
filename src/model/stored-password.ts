import type { Details, DetailsType } from "./details.ts";
import { placeChanges, secretPlace } from "./secret-place.ts";

/** The field of the details that carries a write-only password, by type. */
export const PASSWORD_FIELD: { readonly [T in DetailsType]?: string } = { opcua: "user_identity", s7plus: "password" };

/** The place where the details have a password that is stored, as a path in them; undefined: they have none. Pure. */
export function passwordPath(details: Details): readonly string[] | undefined {
  if (details.type === "opcua") return details.user_identity.type === "UserNamePassword" ? ["user_identity", "password"] : undefined;
  return details.type === "s7plus" && details.password.type === "configured" ? ["password"] : undefined;
}

/**
 * The fields, as paths with dots, whose change would send the stored password elsewhere, as another user or less protected: whoever makes it
 * must know the password. Empty: nothing of that changes, or one of both has no password. Pure.
 */
export function passwordBoundChanges(before: Details, after: Details): readonly string[] {
  if (!passwordPath(before) || !passwordPath(after)) return [];
  const [from, to] = [secretPlace(before), secretPlace(after)];
  return from && to ? placeChanges(from, to) : [];
}
