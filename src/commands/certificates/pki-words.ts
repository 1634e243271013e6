import type { CertificateWords, PkiOverview, RejectedWords, RevocationWords, TrustedWords } from "../../os/pki/overview.ts";
import { formatTable } from "../table.ts";

/** What the person at the OPC UA server has to do. */
export const TELL_SERVER = [
  "Trust the certificate with this thumbprint at each OPC UA server. After a first attempt to connect, the server usually lists",
  "it among the rejected ones. To hand it over as a file: sudo collector pki export collector.der",
] as const;

const day = (iso: string): string => iso.slice(0, 10);
const minute = (iso: string | null): string => (iso === null ? "-" : `${iso.slice(0, 16).replace("T", " ")}Z`);

/** One certificate in lines for people. Pure. */
export function certificateLines({ subject, thumbprint, application_uri, valid_from, valid_to, notes }: CertificateWords): string[] {
  return [
    `  subject          ${subject}`,
    `  thumbprint       ${thumbprint} (SHA-1)`,
    `  application URI  ${application_uri ?? "none"}`,
    `  valid            ${day(valid_from)} to ${day(valid_to)}`,
    ...(notes.length === 0 ? [] : [`  note             ${notes.join(", ")}`]),
  ];
}

/** The whole PKI in lines for people. Pure. */
export function overviewLines(overview: PkiOverview): string[] {
  const { own, next, trusted, rejected, issuers, revocation_lists: lists, users, problems } = overview;
  const waiting = rejected.filter(({ by }) => by === "unknown");
  const refused = rejected.filter(({ by }) => by === "person");
  return [
    "This collector's certificate:",
    ...(own
      ? [
          ...certificateLines(own),
          `  file             ${own.file}`,
          `  host names       ${own.host_names.join(", ") || "none"}`,
          ...TELL_SERVER,
        ]
      : ["  none yet: the collector makes it at the first use; to make it now: sudo collector pki export"]),
    ...(next && own
      ? [
          "",
          `It expires on ${day(own.valid_to)}. The next one exists already; trust it at the servers before the collector uses it:`,
          ...certificateLines(next),
          "  file             sudo collector pki export next.der --next",
        ]
      : []),
    "",
    ...section("Trusted:", "  none", withNotes(["THUMBPRINT", "SUBJECT", "VALID TO", "SHOWN BY"], trusted, trustedRow)),
    "",
    ...section(
      "Rejected, waiting for a decision (sudo collector pki trust THUMBPRINT):",
      "  none",
      withNotes(["THUMBPRINT", "SUBJECT", "VALID TO", "SHOWN BY", "LAST SEEN"], waiting, rejectedRow),
    ),
    ...(refused.length === 0
      ? []
      : [
          "",
          ...section("Rejected by a person:", "", [
            ["THUMBPRINT", "SUBJECT", "VALID TO", "SHOWN BY", "LAST SEEN"],
            ...refused.map(rejectedRow),
          ]),
        ]),
    ...(issuers.length === 0
      ? []
      : [
          "",
          ...section(
            "Issuers that link to trusted authorities:",
            "",
            withNotes(["THUMBPRINT", "SUBJECT", "VALID TO"], issuers, ({ thumbprint, subject, valid_to }) => [
              thumbprint,
              subject,
              day(valid_to),
            ]),
          ),
        ]),
    ...(lists.length === 0
      ? []
      : ["", ...section("Revocation lists:", "", [["AUTHORITY", "OF", "NEXT DUE", "REVOKED"], ...lists.map(revocationRow)])]),
    ...(users.length === 0
      ? []
      : [
          "",
          ...section(
            "User certificates:",
            "",
            withNotes(["NAME", "THUMBPRINT", "SUBJECT", "VALID TO"], users, ({ name, thumbprint, subject, valid_to }) => [
              name,
              thumbprint,
              subject,
              day(valid_to),
            ]),
          ),
        ]),
    ...(problems.length === 0 ? [] : ["", "Cannot be used:", ...problems.map((problem) => `  ${problem}`)]),
  ];
}

const trustedRow = ({ thumbprint, subject, valid_to, authority, peers }: TrustedWords): string[] => [
  thumbprint,
  authority ? `${subject} (authority)` : subject,
  day(valid_to),
  peers.length === 0 ? "-" : peers.slice(0, 3).join(", ") + (peers.length > 3 ? ` and ${peers.length - 3} more` : ""),
];

const revocationRow = ({ issuer, of, next_due, revoked }: RevocationWords): string[] => [
  issuer,
  day(of),
  next_due === null ? "-" : `${day(next_due)}${Date.parse(next_due) < Date.now() ? " (over)" : ""}`,
  String(revoked),
];

const rejectedRow = ({ thumbprint, subject, valid_to, of, peer, last_seen }: RejectedWords): string[] => [
  thumbprint,
  subject,
  day(valid_to),
  peer === null || peer === "" ? "-" : `${of} ${peer}`,
  minute(last_seen),
];

/** A table with a column for notes, where one of them has any. */
function withNotes<T extends CertificateWords>(
  head: readonly string[],
  all: readonly T[],
  rowOf: (one: T) => readonly string[],
): readonly (readonly string[])[] {
  if (all.every(({ notes }) => notes.length === 0)) return [head, ...all.map(rowOf)];
  return [[...head, "NOTE"], ...all.map((one) => [...rowOf(one), one.notes.join(", ") || "-"])];
}

/** A heading and a table; `none` where the table has nothing but its head. */
function section(heading: string, none: string, rows: readonly (readonly string[])[]): string[] {
  return [heading, ...(rows.length === 1 ? [none] : formatTable(rows).map((line) => `  ${line}`))];
}
